import { describe, expect, test } from 'vitest';
import type { Exchange } from '../../src/exchange/exchange.js';
import { progressTokenOf, serverMessageFor } from '../../src/exchange/progress.js';
import { type NotificationFrame, parseLenientFrames } from '../../src/jsonrpc/index.js';

const notification = (text: string): NotificationFrame => {
  const [frame] = parseLenientFrames(Buffer.from(text)).filter(({ type }) => type === 'notification');
  return frame as NotificationFrame;
};
const progress = (token: string) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0,"progressToken":${token},"x":[ ]}}`;
const asking = (token: string | undefined) =>
  ({ request: { progressToken: token }, progressToken: token }) as unknown as Exchange;

test.each([
  ['7', '7'],
  ['"a\\u0041"', '"a\\u0041"'],
  ['null', undefined],
  ['{}', undefined],
])('the token %s of a notification is %s', (token, expected) => {
  expect(progressTokenOf(notification(progress(token)))).toBe(expected);
});

describe('progress on its way to the client', () => {
  test.each([
    ['7', '"mine"', '7', '"mine"'],
    ['7', '"mine"', '"7"', '"mine"'],
    ['7', '"mine"', '7.0', '"mine"'],
    ['9007199254740993', '9007199254740993', '9007199254740992', '9007199254740993'],
    ['"\\u0041"', '"\\u0041"', '"A"', '"\\u0041"'],
    ['7', '7', '7', '7'],
  ])('sent under %s for the client’s %s comes back as %s, and goes out as %s', (sent, own, named, out) => {
    const message = serverMessageFor(asking(own), notification(progress(named)), sent);
    expect(message?.bytes.toString()).toBe(progress(out));
  });

  test.each([
    ['of another call', '7', '"mine"', '8'],
    ['without a token', '7', '"mine"', 'null'],
    ['that nobody asked for', '7', undefined, '7'],
    ['when the backend was given no token', undefined, '"mine"', '7'],
  ])('%s goes nowhere', (_what, sent, own, named) => {
    expect(serverMessageFor(asking(own), notification(progress(named)), sent)).toBeUndefined();
  });
});

test('another notification goes out as it came, and alone where it came among others', () => {
  const text = '{"jsonrpc":"2.0","method":"notifications/message","params":{"progressToken":1.0}}';
  const alone = serverMessageFor(asking(undefined), notification(text), undefined);
  expect(alone?.bytes.toString()).toBe(text);
  const among = serverMessageFor(
    asking(undefined),
    notification(`[ ${text} ,{"jsonrpc":"2.0","id":1,"result":{}}]`),
    undefined,
  );
  expect(among?.bytes.toString()).toBe(text);
});
