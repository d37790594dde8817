import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';

/** Lists at the end of a run which suites were left out; their names say what they need. */
export default class LeftOut implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // A run that was narrowed down by a name leaves out what it is meant to.
    if (this.#vitest?.config.testNamePattern !== undefined) return;
    const left = new Set<string>();
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        // Tests whose suite failed to start are skipped too, and are told of as failures.
        if (test.options.mode === 'skip' || test.options.mode === 'todo') left.add(outermostSkipped(test));
      }
    }
    if (left.size === 0) return;
    this.#vitest?.logger.log(`\n Left out\n${[...left].map((name) => `   ${name}\n`).join('')}`);
  }
}

function outermostSkipped(test: TestCase): string {
  let node: TestCase | TestSuite = test;
  while (node.parent.type === 'suite' && node.parent.options.mode === 'skip') node = node.parent;
  return node.fullName;
}
