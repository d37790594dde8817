// What was counted of the peers, as PEERS.md.

const CELLS = { LL: '2025-11-25', LM: '2025-11-25', ML: '2026-07-28', MM: '2026-07-28' };

const HEAD = `# What peers do right

Made by \`npm run conformance -- --peers\`; not written by hand. Figures are checks passed/failed by the server scenarios of the
official suite, \`@modelcontextprotocol/conformance\`: those of 2025-11-25 for legacy clients (LL, LM) and of 2026-07-28 for modern
ones (ML, MM), on the same legacy and modern fixture servers for all. A check that was not reached, since its scenario had
broken off before, is neither passed nor failed: what counts is how much of the first line is there.`;

const line = (cells) => `| ${cells.join(' | ')} |`;
const rule = (columns) => line(Array.from({ length: columns }, () => '---'));

const inCell = (cell) => {
  if (!cell) return '—';
  return cell.missing ? 'does not serve' : `${cell.passed}/${cell.failed}`;
};

const WORDS = { failed: 'failed', missed: 'not reached', warned: 'warned of' };

const differences = (counts = {}) =>
  Object.entries(WORDS)
    .filter(([kind]) => counts[kind] > 0)
    .map(([kind, word]) => `${counts[kind]} ${word}`)
    .join(', ');

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).trimEnd()}.`;

/** The checks of one peer that did not come out as without it, by scenario and cell. */
function section(name, { version, limit, cells }) {
  const shown = Object.keys(cells);
  const scenarios = new Set(Object.values(cells).flatMap((cell) => Object.keys(cell.scenarios ?? {})));
  const about = [limit, ...shown.map((cell) => cells[cell].missing && `${cell}: ${cells[cell].missing}`)];
  const head = [
    `## ${[name, version].filter(Boolean).join(' ')}`,
    about.filter(Boolean).map(sentence).join(' '),
  ];
  if (scenarios.size === 0) return [...head, 'All as without it.'];
  const rows = [...scenarios]
    .sort()
    .map((scenario) =>
      line([scenario, ...shown.map((cell) => differences(cells[cell].scenarios?.[scenario]))]),
    );
  return [...head, [line(['scenario', ...shown]), rule(shown.length + 1), ...rows].join('\n')];
}

/** The text of PEERS.md, of what `readPeers` gives. */
export function formatPeers({ suite, direct, peers }) {
  const reference = Object.values(CELLS).map((revision) => inCell(direct[revision]));
  const rows = Object.entries(peers).map(([name, { version, date, cells }]) =>
    line([name, version, date, ...Object.keys(CELLS).map((cell) => inCell(cells[cell]))]),
  );
  const table = [
    line(['', 'version', 'date', ...Object.keys(CELLS)]),
    rule(7),
    line(['nothing in between', '', '', ...reference]),
    ...rows,
  ];
  const sections = Object.entries(peers).flatMap(([name, peer]) => section(name, peer));
  return `${[HEAD, `Suite ${suite}.`, table.join('\n'), ...sections].filter(Boolean).join('\n\n')}\n`;
}
