// The Inspector's command line, a process for each step. `mode` is the era.
import { node, packagePath, printed } from './command-line.mjs';
import { exercise, mode, url } from './exercise.mjs';

const CLI = packagePath('@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const request = (method, ...more) => [
  '--cli',
  '--server-url',
  url,
  '--transport',
  'http',
  '--protocol-era',
  mode,
  '--format',
  'json',
  '--method',
  method,
  ...more,
];
const pairs = (args) =>
  Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${JSON.stringify(value)}`]);
const call = ({ tool, args }) => request('tools/call', '--tool-name', tool, ...pairs(args));

await exercise({
  connect: () => printed(CLI, request('tools/list')),
  list: async () => {
    const { result } = JSON.parse(await printed(CLI, request('tools/list')));
    return result.tools.map(({ name }) => name);
  },
  call: (words) => printed(CLI, call(words)),
  async error(words) {
    const { stdout, stderr } = await node(CLI, call(words));
    return stdout + stderr;
  },
  read: ({ uri }) => printed(CLI, request('resources/read', '--uri', uri)),
});
