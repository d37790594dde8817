// What a pair of peers must do together, and in which words a server has it.

/** In the order in which they are run. */
export const STEPS = ['connect', 'list', 'call', 'error', 'read', 'progress', 'question', 'change'];

/** The words of the servers in this folder. Others have their own, with the steps left out that they cannot do. */
export const FIXTURE = {
  list: { tools: ['add', 'ask', 'fail', 'slow', 'touch'] },
  call: { tool: 'add', args: { a: 3, b: 4 }, text: '7' },
  error: { tool: 'fail', args: {}, text: 'It failed on purpose' },
  read: { uri: 'note://today', text: 'Today' },
  progress: { tool: 'slow', args: {}, count: 3, text: 'slept' },
  /** The client fills the string members of every form with `Ada`. */
  question: { tool: 'ask', args: {}, text: 'Hello Ada' },
  /** `tool` has the server tell that `uri` has changed. */
  change: { uri: 'note://today', tool: 'touch', args: {} },
};

/** The fixture without some of its steps. */
export function fixtureWithout(...steps) {
  return Object.fromEntries(Object.entries(FIXTURE).filter(([step]) => !steps.includes(step)));
}

const has = (saw, text) => (String(saw).includes(text) ? undefined : `saw ${JSON.stringify(saw)}`);

const CHECKS = {
  connect: () => undefined,
  list(saw, { tools }) {
    const missing = tools.filter((tool) => !saw.includes(tool));
    return missing.length > 0 ? `the list lacks ${missing.join(', ')}: ${JSON.stringify(saw)}` : undefined;
  },
  call: (saw, { text }) => has(saw, text),
  error: (saw, { text }) => has(saw, text),
  read: (saw, { text }) => has(saw, text),
  progress(saw, { count, text }) {
    return saw.count >= count ? has(saw.text, text) : `${saw.count} of ${count} notifications`;
  },
  question: (saw, { text }) => has(saw, text),
  change: (saw, { uri }) => has(saw, uri),
};

/** What is wrong with what a client saw in a step; undefined when nothing is. */
export function problemWith(step, words, { saw, error }) {
  return error === undefined ? CHECKS[step](saw, words) : error;
}
