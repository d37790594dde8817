// The frame of every client in JavaScript: takes the URL, the steps and the words from PEER, and prints `@step ` and
// one JSON object for each step: what the client saw, or the error.
export const { url, steps, words, mode } = JSON.parse(process.env.PEER);

const STEP_MS = 20_000;

function tell(line) {
  process.stdout.write(`@step ${JSON.stringify(line)}\n`);
}

function textOf(error) {
  const cause = error?.cause === undefined ? '' : `: ${textOf(error.cause)}`;
  return `${error?.message ?? JSON.stringify(error)}${cause}`.slice(0, 600);
}

async function inTime(promise) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${STEP_MS} ms`)), STEP_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Takes the steps that were asked for: `actions` has a function for each, which gets the words of the step and gives
 * what was seen. Without a connection the others are left out. Ends the process.
 */
export async function exercise(actions, close = () => {}) {
  for (const step of steps) {
    try {
      tell({ step, saw: (await inTime(actions[step](words[step]))) ?? '' });
    } catch (error) {
      tell({ step, error: textOf(error) });
      if (step === 'connect') break;
    }
  }
  await inTime(close()).catch(() => {});
  process.exit(0);
}

/** The text of a tool's result, whatever its other parts are. */
export function text(result) {
  return (result?.content ?? []).map((part) => part.text ?? `(${part.type})`).join(' ');
}

/** What a tool said when it failed, in a result or in an exception. */
export async function failure(call) {
  try {
    const result = await call();
    return result?.isError ? text(result) : `no error: ${JSON.stringify(result)}`;
  } catch (error) {
    return textOf(error);
  }
}

/** The answer to a form: each member that is required is `Ada`. */
export function filled(schema) {
  return Object.fromEntries((schema?.required ?? []).map((key) => [key, 'Ada']));
}

/** Calls `act` until `seen()` gives something: a stream that changes are told on may open a moment later. */
export async function until(seen, act) {
  for (let n = 0; n < 40; n += 1) {
    if (n % 8 === 0) await act();
    const saw = seen();
    if (saw !== undefined) return saw;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('no change was told');
}
