/** The two wire languages of MCP: with handshake and session, or stateless with `_meta` on every request. */
export type EraName = 'legacy' | 'modern';

/** A dated protocol revision, such as `2025-11-25`. */
export type Revision = string;
