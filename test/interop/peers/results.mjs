// What was seen, kept from run to run in results.json, and RESULTS.md made of it. A row that was not run this time
// keeps what was seen last, with its date.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { CALLERS, CLIENTS } from './clients.mjs';
import { REFERENCES } from './references.mjs';
import { PLACES, SERVERS, TRANSPORTS } from './servers.mjs';

const STORE = fileURLToPath(new URL('results.json', import.meta.url));
const PAGE = fileURLToPath(new URL('../RESULTS.md', import.meta.url));

const stored = existsSync(STORE) ? JSON.parse(readFileSync(STORE, 'utf8')) : {};

const keyOf = ({ table, client, server, transport, place }) =>
  [
    table,
    (table === 'clients' ? client : server).name,
    (table === 'clients' ? client : server).version,
    transport,
    place,
  ].join('|');

/** Remembers what was seen of a pair. */
export function keep(pair, { steps, problems, seen }) {
  const date = new Date().toISOString().slice(0, 10);
  const kept = problems.map(({ step, problem, why }) => ({ step, why: why ?? problem.slice(0, 300) }));
  stored[keyOf(pair)] = { date, steps, problems: kept, seen };
}

class Notes {
  #texts = [];

  /** The mark of a note with this text. */
  mark(text) {
    if (!this.#texts.includes(text)) this.#texts.push(text);
    return `[${this.#texts.indexOf(text) + 1}]`;
  }

  get lines() {
    return this.#texts.map((text, index) => `${index + 1}. ${text}`);
  }
}

const escaped = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const row = (cells) => `| ${cells.map(escaped).join(' | ')} |`;
const table = (heads, rows) => [row(heads), row(heads.map(() => '---')), ...rows.map(row)].join('\n');

function cellOf(record, notes) {
  if (record === undefined) return 'not run';
  const marks = record.problems.map(({ step, why }) => `${step} ${notes.mark(why)}`);
  if (record.steps.length === 0) return `does not work: ${marks.join(', ')}`;
  const cells = record.seen.join(', ');
  return marks.length === 0 ? `works (${cells})` : `works (${cells}), but not ${marks.join(', ')}`;
}

const lacksOf = (entry, notes) =>
  Object.entries(entry.lacks ?? {})
    .map(([step, why]) => `${step} ${notes.mark(why)}`)
    .join(', ') || 'nothing';

const datesOf = (records) => {
  const dates = records.flatMap((record) => (record === undefined ? [] : [record.date])).sort();
  return dates.at(-1) ?? '—';
};

function clientTable(notes) {
  const heads = [
    'client',
    'version',
    'speaks',
    'has no means for',
    ...PLACES.map(({ place }) => place),
    'seen',
  ];
  const rows = CLIENTS.map((client) => {
    const records = PLACES.map((place) => stored[keyOf({ table: 'clients', client, ...place })]);
    const cells = records.map((record) => cellOf(record, notes));
    return [client.name, client.version, client.speaks, lacksOf(client, notes), ...cells, datesOf(records)];
  });
  return table(heads, rows);
}

function serverTable(name, servers, notes) {
  const callers = CALLERS.map((client) => `called by ${client.name} ${client.version} (${client.era})`);
  const heads = ['server', 'version', 'speaks', 'transport', 'has no means for', ...callers, 'seen'];
  const rows = servers.flatMap((server) =>
    Object.entries(TRANSPORTS).flatMap(([transport, words]) => {
      if (server[transport] === undefined) return [];
      const records = CALLERS.map(({ era }) => stored[keyOf({ table: name, server, transport, place: era })]);
      const cells = records.map((record) => cellOf(record, notes));
      return [
        [
          server.name,
          server.version,
          server.speaks,
          words,
          lacksOf(server, notes),
          ...cells,
          datesOf(records),
        ],
      ];
    }),
  );
  return table(heads, rows);
}

/** Writes results.json and RESULTS.md. */
export function writeResults() {
  const sorted = Object.fromEntries(Object.entries(stored).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(STORE, `${JSON.stringify(sorted, undefined, 2)}\n`);
  const notes = new Notes();
  const parts = [
    '# Real clients and servers, seen through the gateway',
    `Made by \`npm run interop -- --write\`, last on ${new Date().toISOString().slice(0, 10)} with Node ${process.version} on ${cpus().length} cores.`,
    [
      'Each pair takes the steps that both can do, of these: connect, list, call, error, read, progress, question, change.',
      '**list**, **call** and **read** are of tools and a resource, **error** is a tool that fails, **progress** are the',
      'notifications of a call, **question** is a form that a tool asks the user to fill in, **change** is a subscription to a',
      'resource. *works* means that all of them gave what was expected; the letters are the cells in which the gateway answered:',
      'the client’s era and the server’s (L: legacy, M: modern). Notes are at the end. Every pair is run again by `npm run',
      'interop`, which fails where one does not do what stands here.',
    ].join('\n'),
    '## Clients',
    `In front of servers of ${PLACES.map(
      ({ server }) => `${server.name.replace(/,.*/, '')} ${server.version}`,
    )
      .filter((name, index, all) => all.indexOf(name) === index)
      .join(' and ')}.`,
    clientTable(notes),
    '## Servers',
    serverTable('servers', SERVERS, notes),
    '## Servers that people use, as they start them',
    serverTable('references', REFERENCES, notes),
    '## Notes',
    notes.lines.join('\n'),
  ];
  writeFileSync(PAGE, `${parts.join('\n\n')}\n`);
}
