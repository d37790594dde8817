// The Inspector's `mcpdo`: one connection, kept by a daemon, a process for each step. `mode` is the era.
import { node, packagePath, printed } from './command-line.mjs';
import { exercise, filled, mode, url } from './exercise.mjs';

const CLI = packagePath('@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js');
let connection;
const on = (...args) => ['--format', 'json', '--connection', connection, ...args];
const call = ({ tool, args }) => on('tools/call', tool, '--tool-args-json', JSON.stringify(args));

/** The first object inside `value` that has all of these members. */
function find(value, ...members) {
  if (typeof value !== 'object' || value === null) return undefined;
  if (members.every((member) => value[member] !== undefined)) return value;
  return Object.values(value)
    .map((inner) => find(inner, ...members))
    .find((found) => found !== undefined);
}

await exercise(
  {
    async connect() {
      const told = JSON.parse(
        await printed(CLI, ['--format', 'json', 'connect', url, '--transport', 'http', '--era', mode]),
      );
      connection = find(told, 'name').name;
      return told;
    },
    list: async () =>
      find(JSON.parse(await printed(CLI, on('tools/list'))), 'tools').tools.map(({ name }) => name),
    call: (words) => printed(CLI, call(words)),
    async error(words) {
      const { stdout, stderr } = await node(CLI, call(words));
      return stdout + stderr;
    },
    read: ({ uri }) => printed(CLI, on('resources/read', uri)),
    async question(words) {
      const pending = find(JSON.parse(await printed(CLI, call(words))), 'elicitationId');
      const schema = find(pending, 'properties');
      return printed(CLI, on('elicitation/respond', pending.elicitationId, JSON.stringify(filled(schema))));
    },
  },
  async () => {
    await node(CLI, ['daemon', 'stop']);
  },
);
