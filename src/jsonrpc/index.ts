export * from './edit.js';
export * from './frame.js';
export * from './json.js';
export * from './rope.js';
export * from './sse.js';
export * from './utf8.js';
