// node .ci/count.mjs: prints what failed or was skipped, then `N passed, N failed` as the last line.
//
//   --report FILE  vitest's JSON report
//   --again FILE   the report of tests that are in the other one too: what did not pass is counted
//   --counts FILE  `{ passed, failed }` of another run; may be given several times
//   --steps N      how many steps failed otherwise
//
// Exit code 1 unless everything passed. A test that was skipped has failed, and so has a report that is not there.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    report: { type: 'string', default: '' },
    again: { type: 'string', default: '' },
    counts: { type: 'string', multiple: true, default: [] },
    steps: { type: 'string', default: '0' },
  },
});

/** Counts of a report of vitest. */
function countReport(file) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const count = { passed: 0, failed: 0 };
  for (const { name, status, message, assertionResults } of report.testResults) {
    // A file that could not be loaded, or whose hooks failed, may have no failed test to show for it.
    if (status === 'failed' && !assertionResults.some((test) => test.status === 'failed')) {
      count.failed += 1;
      console.log(`failed: ${name}: ${message}`);
    }
    for (const test of assertionResults) {
      if (test.status === 'passed') {
        count.passed += 1;
        continue;
      }
      count.failed += 1;
      console.log(`${test.status === 'failed' ? 'failed' : 'skipped'}: ${test.fullName}`);
    }
  }
  if (!report.success && count.failed === 0) count.failed = 1;
  return count;
}

const total = { passed: 0, failed: Number(flags.steps) };
function add(what, count) {
  try {
    const { passed, failed } = count();
    console.log(`${what}: ${passed} passed, ${failed} failed`);
    if (what !== 'again') total.passed += passed;
    total.failed += failed;
  } catch (error) {
    total.failed += 1;
    console.log(`${what}: no counts: ${error.message}`);
  }
}
add('tests', () => countReport(flags.report));
if (flags.again) add('again', () => countReport(flags.again));
for (const file of flags.counts) add(basename(file, '.json'), () => JSON.parse(readFileSync(file, 'utf8')));

console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
