// What the gateway changed: the checks of a run through it beside those of the direct run.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const NOT_REACHED = { status: 'NOT REACHED', message: undefined };

/** Counts of the checks of a run. */
export function count(scenarios) {
  const counts = { passed: 0, failed: 0, warnings: 0 };
  for (const checks of scenarios.values()) {
    for (const { status } of checks.values()) {
      if (status === 'SUCCESS') counts.passed += 1;
      else if (status === 'FAILURE') counts.failed += 1;
      else counts.warnings += 1;
    }
  }
  return counts;
}

const deviation = (scenario, check, expected, { status, message }) => ({
  scenario,
  check,
  expected,
  status,
  message,
});

/** Every check of a direct run that did not succeed: a fault of our own fixtures, or of the suite. */
export function faultsOf(scenarios) {
  const faults = [];
  for (const [scenario, checks] of scenarios) {
    for (const [check, result] of checks) {
      if (result.status !== 'SUCCESS') faults.push(deviation(scenario, check, 'SUCCESS', result));
    }
  }
  return faults;
}

/**
 * Every check that succeeded directly and not through the gateway, also where the suite did not come so far as to make
 * it, and every one that did not succeed and was not made directly.
 */
export function changesOf(direct, through) {
  const changes = [];
  for (const [scenario, checks] of direct) {
    for (const [check, { status }] of checks) {
      const result = through.get(scenario)?.get(check) ?? NOT_REACHED;
      if (status === 'SUCCESS' && result.status !== 'SUCCESS') {
        changes.push(deviation(scenario, check, status, result));
      }
    }
  }
  for (const [scenario, checks] of through) {
    for (const [check, result] of checks) {
      if (result.status !== 'SUCCESS' && !direct.get(scenario)?.has(check)) {
        changes.push(deviation(scenario, check, 'not made', result));
      }
    }
  }
  return changes;
}

/**
 * The expected failures: run -> scenario -> check -> reason.
 * @throws Error where a reason is missing
 */
export function readExpectations(file) {
  const runs = parse(readFileSync(file, 'utf8')) ?? {};
  for (const [run, scenarios] of Object.entries(runs)) {
    for (const [scenario, checks] of Object.entries(scenarios)) {
      for (const [check, reason] of Object.entries(checks)) {
        if (typeof reason === 'string' && reason.trim() !== '') continue;
        throw new Error(`${file}: no reason for ${run}: ${scenario}: ${check}`);
      }
    }
  }
  return runs;
}

/**
 * Sorts the deviations of a run into those that are expected, with their reasons, and those that are not, and names the
 * expectations that did not come true.
 */
export function judge(deviations, expected = {}) {
  const reasonOf = ({ scenario, check }) => expected[scenario]?.[check];
  const met = deviations.filter(reasonOf).map((item) => ({ ...item, reason: reasonOf(item) }));
  const unexpected = deviations.filter((item) => !reasonOf(item));
  const stale = [];
  for (const [scenario, checks] of Object.entries(expected)) {
    for (const check of Object.keys(checks)) {
      if (!met.some((item) => item.scenario === scenario && item.check === check)) {
        stale.push({ scenario, check });
      }
    }
  }
  return { expected: met, unexpected, stale };
}
