export { ByteTable } from './byte-table.js';
export * from './edit.js';
export * from './extent.js';
export * from './frame.js';
export {
  type JsonKind,
  type JsonMember,
  type JsonNode,
  JsonSyntaxError,
  scanJson,
} from './json.js';
export * from './lookup.js';
export * from './name-map.js';
export * from './parse.js';
export * from './rope.js';
export * from './sse-decoder.js';
export * from './sse-encoder.js';
export * from './utf8.js';
