import { expect, test } from 'vitest';
import {
  type Change,
  changeNotification,
  changeOf,
  covers,
  isChange,
  LIST_CHANGES,
  type ListChange,
  listChange,
  RESOURCE_UPDATED,
  resourceUpdate,
  subjectOf,
} from '../../../src/exchange/changes/change.js';
import {
  type ChangeFilter,
  intersect,
  matches,
  sameFilter,
} from '../../../src/exchange/changes/change-filter.js';
import { type NotificationFrame, parseFrame } from '../../../src/jsonrpc/index.js';

const filter = (lists: ListChange[], resources: string[] = []): ChangeFilter => ({
  lists: new Set(lists),
  resources: new Set(resources),
});
const read = (text: string): Change => changeOf(parseFrame(Buffer.from(text)) as NotificationFrame);
const frame = (method: string, params?: string) =>
  `{"jsonrpc":"2.0","method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;
const written = (change: Change, meta: [string, string | undefined][] = []) =>
  changeNotification(change, new Map(meta)).toBuffer().toString();

test('the four notifications of changes are known, and no others', () => {
  for (const method of [...Object.values(LIST_CHANGES), RESOURCE_UPDATED])
    expect(isChange(method)).toBe(true);
  for (const method of ['notifications/message', 'notifications/tools', 'toolsListChanged', ''])
    expect(isChange(method)).toBe(false);
});

test.each([
  ['file:///a', 'file:///a', true],
  ['file:///a', 'file:///a/b', true],
  ['file:///a/', 'file:///a/b', true],
  ['file:///a/', 'file:///a', false],
  ['file:///a', 'file:///ab', false],
  ['file:///a/b', 'file:///a', false],
  ['file://', 'file:///a', true],
  ['file:', 'file:///a', true],
  ['a', 'a/b/c/d', true],
  ['', '/a', true],
  ['x?q=1', 'x?q=1/2', true],
  ['x?q=1', 'x?q=12', false],
])('who subscribed to %s hears of %s: %s', (subscribed, changed, expected) => {
  expect(covers(subscribed, changed)).toBe(expected);
  expect(matches(filter([], [subscribed]), resourceUpdate(changed))).toBe(expected);
});

test('a uri of very many parts is looked through no further than its first hundred', () => {
  const uri = `x:${'/a'.repeat(10_000)}`;
  const change = resourceUpdate(uri);
  expect(change.subscribable.length).toBeLessThanOrEqual(102);
  expect(matches(filter([], [uri]), change)).toBe(true);
  expect(matches(filter([], ['x:/a/a']), change)).toBe(true);
});

test('a filter takes what it names', () => {
  const wanted = filter(['toolsListChanged'], ['file:///a']);
  expect(matches(wanted, listChange('toolsListChanged'))).toBe(true);
  expect(matches(wanted, listChange('promptsListChanged'))).toBe(false);
  expect(matches(wanted, resourceUpdate('file:///a'))).toBe(true);
  expect(matches(wanted, resourceUpdate(undefined))).toBe(false);
  expect(matches(wanted, read(frame('notifications/other')))).toBe(false);
});

test('what two filters have in common, and whether they are the same', () => {
  const one = filter(['toolsListChanged', 'promptsListChanged'], ['a', 'b']);
  const other = filter(['promptsListChanged', 'resourcesListChanged'], ['b', 'c']);
  expect(intersect(one, other)).toEqual(filter(['promptsListChanged'], ['b']));
  expect(sameFilter(one, filter(['promptsListChanged', 'toolsListChanged'], ['b', 'a']))).toBe(true);
  expect(sameFilter(one, filter(['toolsListChanged', 'promptsListChanged'], ['a']))).toBe(false);
});

test.each([
  [frame(RESOURCE_UPDATED, '{"uri":"file:///\\u0061"}'), 'file:///a'],
  [frame(RESOURCE_UPDATED, '{"uri":7}'), undefined],
  [frame(RESOURCE_UPDATED), undefined],
  [frame(LIST_CHANGES.toolsListChanged, '{"uri":"file:///a"}'), undefined],
])('%s is a change of the resource %s', (text, uri) => {
  expect(read(text).uri).toBe(uri);
});

test('changes of the same thing have one subject', () => {
  expect(subjectOf(resourceUpdate('a'))).toBe(subjectOf(read(frame(RESOURCE_UPDATED, '{"uri":"a"}'))));
  const subjects = [
    resourceUpdate('a'),
    resourceUpdate('b'),
    listChange('toolsListChanged'),
    resourceUpdate(undefined),
  ];
  expect(new Set(subjects.map(subjectOf)).size).toBe(4);
});

test.each([
  [
    frame(LIST_CHANGES.toolsListChanged),
    [['id', '1']],
    frame(LIST_CHANGES.toolsListChanged, '{"_meta":{"id":1}}'),
  ],
  [
    frame(LIST_CHANGES.toolsListChanged, '{ }'),
    [['id', '"x"']],
    frame(LIST_CHANGES.toolsListChanged, '{ "_meta":{"id":"x"}}'),
  ],
  [
    frame(RESOURCE_UPDATED, '{"uri":"a","n":1.0,"_meta":{"k":[ 1 ],"id":"old"}}'),
    [['id', '2']],
    frame(RESOURCE_UPDATED, '{"uri":"a","n":1.0,"_meta":{"k":[ 1 ],"id":2}}'),
  ],
  [
    frame(RESOURCE_UPDATED, '{"uri":"a","_meta":7}'),
    [['id', '2']],
    frame(RESOURCE_UPDATED, '{"uri":"a","_meta":{"id":2}}'),
  ],
  [frame(LIST_CHANGES.toolsListChanged), [['id', undefined]], frame(LIST_CHANGES.toolsListChanged)],
  [
    frame(RESOURCE_UPDATED, '{"uri":"a","_meta":{"id":2,"k":1}}'),
    [['id', undefined]],
    frame(RESOURCE_UPDATED, '{"uri":"a","_meta":{"k":1}}'),
  ],
] as [string, [string, string | undefined][], string][])(
  '%s for a subscriber with %j is %s',
  (text, meta, expected) => {
    expect(written(read(text), meta)).toBe(expected);
  },
);

test('a change that may have happened is written like one that did', () => {
  expect(written(listChange('promptsListChanged'), [['id', '1']])).toBe(
    frame(LIST_CHANGES.promptsListChanged, '{"_meta":{"id":1}}'),
  );
  expect(written(listChange('promptsListChanged'))).toBe(frame(LIST_CHANGES.promptsListChanged));
  expect(JSON.parse(written(resourceUpdate('file:///é"'), [['id', '1']])).params).toEqual({
    uri: 'file:///é"',
    _meta: { id: 1 },
  });
  expect(JSON.parse(written(resourceUpdate('a'))).params).toEqual({ uri: 'a' });
});
