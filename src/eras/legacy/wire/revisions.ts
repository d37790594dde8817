import type { Revision } from '../../../exchange/revision.js';

/** The revisions with a handshake, newest first. */
export const LEGACY_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
export type LegacyRevision = (typeof LEGACY_REVISIONS)[number];

export const NEWEST_LEGACY: LegacyRevision = LEGACY_REVISIONS[0];

export function isLegacyRevision(value: unknown): value is LegacyRevision {
  return (LEGACY_REVISIONS as readonly unknown[]).includes(value);
}

/**
 * The revision of a session: the requested one if it is known, else the newest, as the servers of the SDKs answer
 * (basic/lifecycle, "Version Negotiation").
 */
export function negotiateRevision(requested: unknown): LegacyRevision {
  return isLegacyRevision(requested) ? requested : NEWEST_LEGACY;
}

/** What a revision has. */
export interface RevisionFeatures {
  readonly audioContent: boolean;
  readonly resourceLinks: boolean;
  readonly structuredContent: boolean;
  readonly batches: boolean;
  readonly elicitation: boolean;
  readonly urlElicitation: boolean;
  readonly samplingTools: boolean;
  readonly completionContext: boolean;
  readonly tasks: boolean;
  /** Streams have event ids, by which a client can resume them. */
  readonly resumableStreams: boolean;
  /** Clients ignore events without data (SEP-1699); older SDKs parse the empty data as JSON. */
  readonly primingEvents: boolean;
}

/** The revision that introduced each feature. Batches are left out: the next revision removed them again. */
const SINCE: Readonly<Record<Exclude<keyof RevisionFeatures, 'batches'>, LegacyRevision>> = {
  audioContent: '2025-03-26',
  resourceLinks: '2025-06-18',
  structuredContent: '2025-06-18',
  elicitation: '2025-06-18',
  completionContext: '2025-06-18',
  urlElicitation: '2025-11-25',
  samplingTools: '2025-11-25',
  tasks: '2025-11-25',
  resumableStreams: '2025-03-26',
  primingEvents: '2025-11-25',
};

function featuresOf(revision: Revision): RevisionFeatures {
  // Dates of this form sort as text.
  const since = (key: keyof typeof SINCE): boolean => revision >= SINCE[key];
  return {
    audioContent: since('audioContent'),
    resourceLinks: since('resourceLinks'),
    structuredContent: since('structuredContent'),
    elicitation: since('elicitation'),
    completionContext: since('completionContext'),
    tasks: since('tasks'),
    urlElicitation: since('urlElicitation'),
    samplingTools: since('samplingTools'),
    resumableStreams: since('resumableStreams'),
    primingEvents: since('primingEvents'),
    batches: revision === '2025-03-26',
  };
}

const FEATURES = new Map<Revision, RevisionFeatures>(LEGACY_REVISIONS.map((r) => [r, featuresOf(r)]));

export function featuresFor(revision: Revision): RevisionFeatures {
  return FEATURES.get(revision) ?? featuresOf(revision);
}
