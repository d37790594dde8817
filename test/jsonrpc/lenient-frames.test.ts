import { expect, test } from 'vitest';
import { getMember, parseLenientFrames, stringOf } from '../../src/jsonrpc/index.js';

const NOTE = '{"jsonrpc":"2.0","method":"n","params":{ "level":"info" }}';
const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"q","params":{"level":"debug"}}';

test.each([
  ['alone', NOTE, [NOTE]],
  ['with white space around', ` \r\n\t${NOTE}\n `, [NOTE]],
  ['after a byte order mark', `\ufeff ${NOTE}`, [NOTE]],
  ['in an array', `[${NOTE}]`, [NOTE]],
  ['in an array with others', ` [ ${NOTE} ,\n${REQUEST} ,7 ] `, [NOTE, REQUEST]],
])('a message %s has its own buffer, in which its members are found', (_how, text, messages) => {
  const frames = parseLenientFrames(Buffer.from(text));
  expect(frames.map(({ bytes }) => bytes.toString())).toEqual(messages);
  for (const { bytes, root, ...frame } of frames) {
    expect([root.start, root.end]).toEqual([0, bytes.length]);
    const params = 'params' in frame ? frame.params : undefined;
    const level = params === undefined ? undefined : getMember(bytes, params, 'level');
    expect(stringOf(bytes, level)).toMatch(/^(info|debug)$/);
  }
});
