import { describe, expect, test } from 'vitest';
import {
  createdTask,
  dropRelatedTask,
  encodeTask,
  encodeTaskHandle,
  encodeTaskResult,
  neutralTask,
} from '../../../../src/eras/legacy/wire/tasks.js';
import { resultOutcome, scanned, written } from '../../../support/json-node.js';

const RELATED = '"io.modelcontextprotocol/related-task"';

const NOW = new Date('2026-01-02T03:04:05Z');

describe('a task of a legacy server in the neutral form', () => {
  const TIMES = '"createdAt":"a","lastUpdatedAt":"b"';

  test.each([
    [`{"taskId":"t","status":"working",${TIMES},"ttl":5,"pollInterval":7}`, '"ttlMs":5,"pollIntervalMs":7'],
    [
      `{"taskId":"t","status":"working",${TIMES},"ttl":5.6,"pollInterval":6.4}`,
      '"ttlMs":6,"pollIntervalMs":6',
    ],
    [`{"taskId":"t","status":"working",${TIMES},"ttl":null}`, '"ttlMs":null'],
    [`{"taskId":"t","status":"working",${TIMES}}`, '"ttlMs":null'],
    [`{"taskId":"t","status":"working",${TIMES},"ttl":-1,"pollInterval":"x"}`, '"ttlMs":null'],
    [`{"taskId":"t","status":"working",${TIMES},"x":1.0,"_meta":{"a":1}}`, '"x":1.0,"ttlMs":null'],
  ])('%s has %s', (text, members) => {
    const { bytes, node } = scanned(text);
    const head = `{"taskId":"t","status":"working",${TIMES},`;
    expect(neutralTask(bytes, node, NOW)?.text.toString()).toBe(`${head}${members}}`);
  });

  test('has times, whatever the server leaves out', () => {
    const { bytes, node } = scanned('{"taskId":"t","status":"completed"}');
    const task = JSON.parse(neutralTask(bytes, node, NOW)?.text.toString() ?? '');
    const time = '2026-01-02T03:04:05.000Z';
    expect(task).toMatchObject({ createdAt: time, lastUpdatedAt: time });
  });

  test.each(['{}', '[]', '5', '{"taskId":5,"status":"working"}', '{"taskId":"t","status":"busy"}'])(
    'is not %s',
    (text) => {
      const { bytes, node } = scanned(text);
      expect(neutralTask(bytes, node, NOW)).toBeUndefined();
      const created = scanned(`{"task":${text}}`);
      expect(createdTask(created.bytes, created.node, NOW)).toBeUndefined();
    },
  );

  test.each([
    [`{"content":[],"_meta":{${RELATED}:{"taskId":"t"}}}`, '{"content":[]}'],
    [`{"content":[],"_meta":{"a":1.0,${RELATED}:{}}}`, '{"content":[],"_meta":{"a":1.0}}'],
    ['{"content":[],"_meta":{"a":1}}', '{"content":[],"_meta":{"a":1}}'],
    ['{"content":[]}', '{"content":[]}'],
  ])('has the result %s without the id of the task: %s', (text, expected) => {
    const outcome = resultOutcome(text);
    dropRelatedTask(outcome.bytes, outcome.node, outcome.edits);
    expect(written(outcome)).toBe(expected);
  });
});

describe('a neutral task for a legacy client', () => {
  const HEAD = '"taskId":"t","status":';
  const REST = '"createdAt":"a","lastUpdatedAt":"b"';
  const encoded = (text: string, encode: (outcome: ReturnType<typeof resultOutcome>) => void): string => {
    const outcome = resultOutcome(text);
    encode(outcome);
    return written(outcome);
  };

  test.each([
    [
      `{${HEAD}"working",${REST},"ttlMs":5,"pollIntervalMs":7}`,
      `{${HEAD}"working",${REST},"ttl":5,"pollInterval":7}`,
    ],
    [`{${HEAD}"working",${REST},"ttlMs":null}`, `{${HEAD}"working",${REST},"ttl":null}`],
    [
      `{${HEAD}"input_required",${REST},"ttlMs":1,"inputRequests":{"a":{}}}`,
      `{${HEAD}"input_required",${REST},"ttl":1}`,
    ],
    [
      `{${HEAD}"completed",${REST},"ttlMs":1,"result":{"content":[]}}`,
      `{${HEAD}"completed",${REST},"ttl":1}`,
    ],
    [
      `{${HEAD}"completed",${REST},"ttlMs":1,"result":{"isError":true,"content":[{"text":"no"}]}}`,
      `{${HEAD}"failed",${REST},"ttl":1,"statusMessage":"no"}`,
    ],
    [
      `{${HEAD}"completed",${REST},"ttlMs":1,"statusMessage":"own","result":{"isError":true}}`,
      `{${HEAD}"failed",${REST},"statusMessage":"own","ttl":1}`,
    ],
    [
      `{${HEAD}"failed",${REST},"ttlMs":1,"error":{"code":1,"message":"why"}}`,
      `{${HEAD}"failed",${REST},"ttl":1,"statusMessage":"why"}`,
    ],
    [`{${HEAD}"cancelled",${REST},"ttlMs":1,"x":1.0}`, `{${HEAD}"cancelled",${REST},"x":1.0,"ttl":1}`],
  ])('%s is %s', (text, expected) => {
    expect(JSON.parse(encoded(text, encodeTask))).toEqual(JSON.parse(expected));
    expect(JSON.parse(encoded(text, encodeTaskHandle))).toEqual({ task: JSON.parse(expected) });
  });

  test('leaves what is said of the result itself where it is', () => {
    const text = `{${HEAD}"working",${REST},"ttlMs":1,"_meta":{"a":1.0}}`;
    expect(JSON.parse(encoded(text, encodeTaskHandle))).toMatchObject({ _meta: { a: 1 } });
    expect(encoded(text, encodeTask)).toContain('"_meta":{"a":1.0}');
  });

  test.each([
    ['{"content":[]}', `{"content":[],"_meta":{${RELATED}:{"taskId":"é"}}}`],
    ['{"content":[],"_meta":{"a":1.0}}', `{"content":[],"_meta":{"a":1.0,${RELATED}:{"taskId":"é"}}}`],
    ['{"content":[],"_meta":5}', `{"content":[],"_meta":{${RELATED}:{"taskId":"é"}}}`],
  ])('has its result %s bound to it: %s', (text, expected) => {
    expect(encoded(text, (outcome) => encodeTaskResult(outcome, 'é'))).toBe(expected);
  });
});
