import type { Era } from './era.js';
import { legacy } from './legacy/index.js';
import { modern } from './modern/index.js';

export type * from './era.js';

/**
 * The eras that the gateway speaks. A client's request goes to the first that claims it; the last one takes what none
 * has claimed. A backend is probed for them in the same order; the last one is assumed where none is found.
 */
export const ERAS: readonly Era[] = [
  modern, // 2026-07-28 and later
  legacy, // 2024-11-05 to 2025-11-25
];
