export * as asking from './asking.js';
export { startEverything } from './everything.js';
export * as fixture from './fixture.js';
export type { Announcer, Peer, ToolCall } from './peer.js';
export {
  hasPython,
  PYTHON_LIBRARIES,
  PYTHON_NEEDED,
  type PythonClientReport,
  type PythonLibrary,
  type PythonOptions,
  runPythonClient,
  startPython,
  startPythonOrders,
  startPythonTasks,
  startPythonTelling,
} from './python.js';
export { startV1, type V1Options } from './v1.js';
export { startV2, type V2Options } from './v2.js';
