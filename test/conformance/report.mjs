// The report as text and as the table in RESULTS.md.

const figures = ({ passed, failed, warnings }) =>
  `${passed}/${failed}${warnings === 0 ? '' : ` and ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`}`;

const line = ({ scenario, check, expected, status, message }) =>
  `${scenario}: ${check}: ${status} (directly: ${expected})${message ? `: ${message.slice(0, 300)}` : ''}`;

/** One run, with all that is not as it is without the gateway. */
export function formatRun({ name, expected, unexpected, stale, vacuous, ok, ...counts }) {
  const lines = [`${ok ? 'ok    ' : 'FAILED'} ${name}: ${figures(counts)}`];
  for (const item of expected) lines.push(`         expected: ${line(item)}`);
  for (const item of unexpected) lines.push(`         NOT EXPECTED: ${line(item)}`);
  for (const { scenario, check } of stale) {
    lines.push(`         STALE in expected-failures.yaml, it succeeds: ${scenario}: ${check}`);
  }
  if (vacuous) lines.push('         VACUOUS: fewer checks than this run makes of a server that works');
  return lines.join('\n');
}

export function formatSummary(verdicts, ok) {
  const sum = (pick) => verdicts.reduce((total, verdict) => total + pick(verdict), 0);
  const passed = sum((verdict) => verdict.passed);
  const expected = sum((verdict) => verdict.expected.length);
  const unexpected = sum((verdict) => verdict.unexpected.length + verdict.stale.length);
  const runs = `${verdicts.length} runs`;
  return `${ok ? 'OK' : 'FAILED'}: ${runs}, ${passed} checks passed, ${expected} failed as expected, ${unexpected} not as expected`;
}

/** What counts for the gateway: a failure that is expected is neither. A run that is not as it should be has failed once. */
export function sumOf(verdicts) {
  const sum = { passed: 0, failed: 0 };
  for (const { cell, passed, unexpected, stale, ok } of verdicts) {
    if (cell !== 'direct') sum.passed += passed;
    sum.failed += ok ? 0 : Math.max(1, unexpected.length + stale.length);
  }
  return sum;
}

const CELLS = {
  direct: 'no gateway',
  LL: 'legacy client, legacy server',
  LM: 'legacy client, modern server',
  ML: 'modern client, legacy server',
  MM: 'modern client, modern server',
};

const escaped = (text) => text.replace(/\s+/g, ' ').trim().replaceAll('|', '\\|');

/** The table of RESULTS.md. */
export function formatTable(verdicts, { suite, node, suiteNode }) {
  const lines = [
    '# Conformance results',
    '',
    'Made by `npm run conformance`; not written by hand. Figures are checks passed/failed by the official suite,',
    '`@modelcontextprotocol/conformance`. The runs without a gateway are there to be compared with: a check that succeeds in',
    'them and not through the gateway is a fault of the gateway, or is listed below with its reason.',
    '',
    `Suite ${suite} on Node ${suiteNode}, gateway on Node ${node}, ${new Date().toISOString().slice(0, 10)}.`,
    '',
    '| scenarios of | revision | through | passed/failed |',
    '| --- | --- | --- | --- |',
  ];
  for (const { name, revision, cell, ...counts } of verdicts) {
    const through = cell === 'direct' ? CELLS.direct : `${cell} (${CELLS[cell]})`;
    lines.push(`| ${name.split(' ')[0]} | ${revision} | ${through} | ${figures(counts)} |`);
  }
  const expected = verdicts.flatMap(({ name, expected: items }) => items.map((item) => ({ name, ...item })));
  if (expected.length > 0) {
    lines.push('', '## Not as without the gateway, and why', '');
    lines.push('| run | scenario | check | came out as | reason |', '| --- | --- | --- | --- | --- |');
    for (const { name, scenario, check, status, reason } of expected) {
      lines.push(`| ${name} | ${scenario} | ${check} | ${status.toLowerCase()} | ${escaped(reason)} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}
