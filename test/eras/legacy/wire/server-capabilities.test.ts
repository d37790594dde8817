import { describe, expect, test } from 'vitest';
import { featuresFor } from '../../../../src/eras/legacy/wire/revisions.js';
import {
  declaredChanges,
  declaresToolTasks,
  downgradeServerCapabilities,
  legacyServerCapabilities,
  neutralServerCapabilities,
  withoutChangeNotifications,
} from '../../../../src/eras/legacy/wire/server-capabilities.js';

const EXTENSION = '"io.modelcontextprotocol/tasks":{}';

test.each([
  ['{}', true, '{}'],
  ['{"tools":{"listChanged":true},"tasks":{}}', true, '{"tools":{"listChanged":true}}'],
  [
    '{"tools":{"listChanged":true,"x":1.0},"prompts":{"listChanged":false}}',
    false,
    '{"tools":{"x":1.0},"prompts":{}}',
  ],
  ['{"resources":{"subscribe":true,"listChanged":true}}', false, '{"resources":{}}'],
  ['{ "x" : 1.0 , "logging":{ } }', false, '{ "x" : 1.0 , "logging":{ } }'],
])(
  'the capabilities %s of a server that can notify changes (%s) are %s in the neutral form',
  (text, notifies, expected) => {
    expect(neutralServerCapabilities(notifies ? text : withoutChangeNotifications(text))).toBe(expected);
  },
);

test.each([
  ['{}', [], false],
  ['{"tools":{"listChanged":true},"prompts":{"listChanged":1},"resources":{}}', ['toolsListChanged'], false],
  ['{"resources":{"subscribe":true,"listChanged":true}}', ['resourcesListChanged'], true],
])('%s declares changes of %j, and subscriptions: %s', (text, lists, subscribe) => {
  expect(declaredChanges(text)).toEqual({ lists: new Set(lists), subscribe });
});

test.each([
  ['{"tools":{ },"tasks":{}}', '2025-11-25', '{"tools":{ },"tasks":{}}'],
  ['{"tools":{ },"tasks":{}}', '2025-06-18', '{"tools":{ }}'],
])('%s of a legacy server, for a client of %s: %s', (text, revision, expected) => {
  expect(downgradeServerCapabilities(text, featuresFor(revision))).toBe(expected);
});

describe('tasks among the capabilities', () => {
  test.each([
    ['{}', false],
    ['{"tasks":{}}', false],
    ['{"tasks":{"list":{},"cancel":{}}}', false],
    ['{"tasks":{"requests":{"tools":{"call":true}}}}', false],
    ['{"tasks":{"requests":{"sampling":{"createMessage":{}}}}}', false],
    ['{"tasks":{"requests":{"tools":{"call":{}}}}}', true],
  ])(
    '%s: the server runs calls as tasks (%s), which the extension declares in the neutral form',
    (text, runs) => {
      expect(declaresToolTasks(text)).toBe(runs);
      expect(neutralServerCapabilities(text)).toBe(runs ? `{"extensions":{${EXTENSION}}}` : '{}');
    },
  );

  test('leave other extensions and numbers as they are', () => {
    const text = '{"x":1.0,"extensions":{"a":{}},"tasks":{"requests":{"tools":{"call":{}}}}}';
    expect(neutralServerCapabilities(text)).toBe(`{"x":1.0,"extensions":{"a":{},${EXTENSION}}}`);
  });

  test.each([
    [
      `{"extensions":{${EXTENSION}}}`,
      '2025-11-25',
      '{"extensions":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}',
    ],
    [`{"extensions":{${EXTENSION}}}`, '2025-06-18', '{"extensions":{}}'],
    [`{"extensions":{"a":{},${EXTENSION}}}`, '2025-06-18', '{"extensions":{"a":{}}}'],
    ['{"extensions":{"a":{}}}', '2025-11-25', '{"extensions":{"a":{}}}'],
    ['{"tasks":{},"tools":{}}', '2025-11-25', '{"tools":{}}'],
  ])('%s, for a client of %s: %s', (text, revision, expected) => {
    expect(legacyServerCapabilities(text, featuresFor(revision))).toBe(expected);
  });
});
