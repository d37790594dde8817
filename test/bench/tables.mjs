// A report as text.

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ');
  return rows.map(line).join('\n');
}

const fixed = (digits) => (value) => (Number.isFinite(value) ? value.toFixed(digits) : '-');
const [whole, one, two] = [0, 1, 2].map(fixed);

const COLUMNS = [
  ['CPU us/request', ({ cpuMicros }) => one(cpuMicros)],
  ['(median)', ({ cpuMedianMicros }) => `(${one(cpuMedianMicros)})`],
  ['vs pipe', ({ vsPipe }) => two(vsPipe)],
  ['vs http-proxy', ({ vsHttpProxy }) => two(vsHttpProxy)],
  ['requests/s', ({ perSecond }) => whole(perSecond)],
  ['p50 ms', ({ p50Ms }) => two(p50Ms)],
  ['p99 ms', ({ p99Ms }) => two(p99Ms)],
  ['RSS MiB', ({ rssMiB }) => whole(rssMiB)],
];

function idleTable({ sessions, memory, cpu }) {
  const memoryRows = Object.entries(memory).map(([cell, { heap, rss }]) => [cell, whole(heap), whole(rss)]);
  const cpuRows = Object.entries(cpu).map(([cell, figure]) => [
    cell,
    one(figure.without),
    one(figure.with),
    two(figure.ratio),
  ]);
  return [
    `Idle legacy sessions, ${sessions} on each route`,
    table([['', 'heap bytes/session', 'RSS bytes/session'], ...memoryRows]),
    table([['', 'CPU us/request without', 'with', 'ratio'], ...cpuRows]),
  ].join('\n\n');
}

function listsTable({ bytes, cpu }) {
  const rows = Object.entries(cpu).map(([name, { kept, pipe, ratio }]) => [
    name,
    one(kept),
    one(pipe),
    two(ratio),
  ]);
  return [
    `tools/list of ${bytes} bytes, kept by the gateway, fetched each time by the pipe`,
    table([['', 'CPU us/request', 'pipe', 'ratio'], ...rows]),
  ].join('\n\n');
}

const STREAM_NAMES = { ML: 'subscriptions/listen (ML)', LM: 'GET (LM)' };

const STREAM_COLUMNS = [
  ['backend feeds', ({ feeds }) => whole(feeds)],
  ['heap bytes/stream', ({ heap }) => whole(heap)],
  ['RSS bytes/stream', ({ rss }) => whole(rss)],
  ['change reaches all, ms', ({ reachMs }) => whole(reachMs)],
  ['(slowest)', ({ slowestMs }) => `(${whole(slowestMs)})`],
  ['CPU us/stream', ({ cpuMicros }) => one(cpuMicros)],
  ['20 readers, ms', ({ stalled }) => two(stalled.without)],
  ['beside a stalled one', ({ stalled }) => two(stalled.with)],
];

function listenersTable({ streams, planned, cells }) {
  const less = streams < planned ? ` (not ${planned}: limit of open files)` : '';
  const rows = Object.entries(cells).map(([cell, figure]) => [
    STREAM_NAMES[cell],
    ...STREAM_COLUMNS.map(([, format]) => format(figure)),
  ]);
  return [
    `Idle streams, ${streams} of each kind${less}; what reading takes in the bench's one process is part of the times`,
    table([['', ...STREAM_COLUMNS.map(([title]) => title)], ...rows]),
  ].join('\n\n');
}

function targetTable(targets) {
  const rows = targets.map(({ name, limit, value, met }) => [
    name,
    `<= ${limit}`,
    two(value),
    value === undefined ? 'not measured' : met ? 'met' : 'MISSED',
  ]);
  return `Targets\n\n${table([['', 'target', 'value', ''], ...rows])}`;
}

const PEER_COLUMNS = [
  ...COLUMNS.filter(([title]) => !['(median)', 'vs http-proxy'].includes(title)),
  ['checks', ({ checks: { passed, failed } }) => (passed === undefined ? '-' : `${passed}/${failed}`)],
];

/** The report of a run beside other proxies, as text. */
export function formatPeersReport({ machine, peers }) {
  const head = `tools/call; CPU of all processes of a proxy, lowest decile; all else: medians; ${Object.values(machine).join(', ')}`;
  const rows = peers.flatMap(({ name, cells }) =>
    Object.entries(cells).map(([cell, figure]) => [
      `${cell} ${name}`,
      ...PEER_COLUMNS.map(([, format]) => format(figure)),
    ]),
  );
  rows.sort(([a], [b]) => a.slice(0, 2).localeCompare(b.slice(0, 2)));
  const notes = peers.map(({ name, version, limit, missing }) => {
    const said = [version, limit, missing && `not measured: ${missing}`].filter(Boolean);
    return said.length > 0 ? `${name}: ${said.join('; ')}` : name;
  });
  notes.push(
    '',
    'checks: passed/failed by the conformance suite, of 84 in LL and LM and 152 in ML and MM, when `npm run conformance -- --peers` was run last',
  );
  return [head, table([['', ...PEER_COLUMNS.map(([title]) => title)], ...rows]), notes.join('\n')].join(
    '\n\n',
  );
}

/** The report as text. */
export function formatReport({ machine, rounds, proxies, idle, lists, listeners, targets }) {
  const head = `tools/call, ${rounds} alternating rounds; CPU: lowest decile, all else: medians; ${Object.values(machine).join(', ')}`;
  const name = (key) => (key.length === 2 ? `Eragate ${key}` : key);
  const rows = Object.entries(proxies).map(([key, figure]) => [
    name(key),
    ...COLUMNS.map(([, format]) => format(figure)),
  ]);
  const main = table([['', ...COLUMNS.map(([title]) => title)], ...rows]);
  const more = [idle && idleTable(idle), lists && listsTable(lists), listeners && listenersTable(listeners)];
  return [head, main, ...more.filter(Boolean), targetTable(targets)].join('\n\n');
}
