import { expect, test } from 'vitest';
import { answerFor } from '../../../../src/eras/legacy/wire/answers.js';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';

const SAMPLING = 'sampling/createMessage';
const block = (text: string): string => `{"type":"text","text":"${text}"}`;

test.each<[string, string, string, string | undefined]>([
  [SAMPLING, '2025-11-25', `{"role":"assistant","content":[${block('a')},${block('b')}]}`, undefined],
  [SAMPLING, '2025-06-18', `{"role":"assistant","content":${block('a')},"n":1.0}`, undefined],
  [SAMPLING, '2025-06-18', `{"content":[${block('a')}],"n":1.0}`, `{"content":${block('a')},"n":1.0}`],
  [
    SAMPLING,
    '2025-06-18',
    '{"content":[{"type":"image","data":"AA=="}]}',
    '{"content":{"type":"image","data":"AA=="}}',
  ],
  [SAMPLING, '2024-11-05', `{"content":[${block('a')},${block('b')}]}`, `{"content":${block('a\\nb')}}`],
  [
    SAMPLING,
    '2025-06-18',
    `{"content":[${block('a')},{"type":"tool_use","name":"t"},7]}`,
    `{"content":${block('a')}}`,
  ],
  [SAMPLING, '2025-06-18', '{"content":[]}', `{"content":${block('')}}`],
  [SAMPLING, '2025-06-18', '{}', undefined],
  ['elicitation/create', '2025-06-18', `{"action":"accept","content":[${block('a')}]}`, undefined],
  ['roots/list', '2025-06-18', '{"roots":[]}', undefined],
])('to a server of %s %s, the answer %s is %s', (method, revision, text, expected) => {
  const answer = answerFor(method, { result: Buffer.from(text) }, featuresFor(revision));
  expect('result' in answer && answer.result.toString()).toBe(expected ?? text);
});

test('an error is passed on as it is', () => {
  const answer = { error: Buffer.from('{"code":-1,"message":"no","data":[1.0]}') };
  expect(answerFor(SAMPLING, answer, featuresFor('2025-06-18'))).toBe(answer);
});
