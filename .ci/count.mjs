// node .ci/count.mjs REPORT FAILED_STEPS [COUNTS…]: prints what was skipped, then `N passed, N failed` as the last line,
// from vitest's JSON report and from files with `{ passed, failed }`. Exits with 1 unless everything passed.
import { readFileSync } from 'node:fs';

const [file, steps, ...counts] = process.argv.slice(2);
let passed = 0;
let failed = Number(steps);
try {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  for (const { name, status, message, assertionResults } of report.testResults) {
    // A file that could not be loaded, or whose hooks failed, may have no failed test to show for it.
    const failures = assertionResults.filter((test) => test.status === 'failed').length;
    if (status === 'failed' && failures === 0) {
      failed += 1;
      console.log(`failed: ${name}: ${message}`);
    }
    for (const test of assertionResults) {
      if (test.status === 'passed') passed += 1;
      else failed += 1;
      if (test.status !== 'passed' && test.status !== 'failed') console.log(`skipped: ${test.fullName}`);
    }
  }
  if (!report.success && failed === 0) failed = 1;
} catch (error) {
  failed += 1;
  console.log(`no test report: ${error.message}`);
}
for (const other of counts) {
  try {
    const count = JSON.parse(readFileSync(other, 'utf8'));
    passed += count.passed;
    failed += count.failed;
  } catch (error) {
    failed += 1;
    console.log(`no counts: ${error.message}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
