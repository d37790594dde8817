// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/index.js';
import { problemsOf } from './support.js';

const withLost = (lost: string) =>
  `routes:\n  - path: /mcp\n    backend: { url: "http://b:1/mcp" }\n    sessions:\n      lost: ${lost}\n`;
const lostOf = (lost: string, env: Record<string, string> = {}) =>
  parseConfig(withLost(lost), 'gateway.yaml', env).routes[0]?.sessions.lost;

test('a lost session is recognized by a status, and by a text where other responses have that status', () => {
  expect(lostOf('[{ status: 409 }, { status: 503, message: "session expired" }]')).toEqual([
    { status: 409 },
    { status: 503, message: 'session expired' },
  ]);
  expect(lostOf('[]')).toEqual([]);
  expect(lostOf('[{ status: 200, message: gone }]')).toEqual([{ status: 200, message: 'gone' }]);
  expect(lostOf('[{ status: "${S}", message: "${M:-gone}" }]', { S: '500' })).toEqual([
    { status: 500, message: 'gone' },
  ]);
});

test.each([
  ['[{ message: gone }]', '5:14: routes[0].sessions.lost[0].status: found nothing, expected an HTTP status'],
  ['[{ status: 302 }]', '5:24: routes[0].sessions.lost[0].status: found 302, expected an HTTP status'],
  ['[{ status: 700 }]', 'found 700'],
  ['[{ status: gone }]', 'found "gone"'],
  ['[{ status: 503, message: "" }]', 'lost[0].message: found "", expected text'],
  ['[{ status: 503, text: gone }]', 'the unknown key "text", expected one of status, message'],
  ['[503]', 'lost[0]: found 503, expected a mapping with status'],
  ['{ status: 503 }', 'lost: found a mapping, expected a list of answers'],
  [
    '[{ status: 200 }]',
    'lost[0].message: found nothing, expected a text that tells the response from others',
  ],
])('%s is refused', (lost, expected) => {
  expect(problemsOf(withLost(lost))).toEqual([expect.stringContaining(expected)]);
});
