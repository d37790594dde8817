import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Runs the files of the long project first, so that no worker is left with one of them at the end. */
export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ project }: TestSpecification) => project.name === 'long';
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
