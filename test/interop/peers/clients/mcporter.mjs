// mcporter, a process for each step.
import { node, packagePath, printed } from './command-line.mjs';
import { exercise, url } from './exercise.mjs';

const CLI = packagePath('mcporter/dist/cli.js');
const server = ['--http-url', url, '--allow-http', '--name', 'interop'];
const call = ({ tool, args }) => [
  'call',
  ...server,
  '--tool',
  tool,
  '--args',
  JSON.stringify(args),
  '--output',
  'json',
];

await exercise({
  connect: () => printed(CLI, ['list', ...server, '--json']),
  list: async () =>
    JSON.parse(await printed(CLI, ['list', ...server, '--json'])).tools.map(({ name }) => name),
  call: (words) => printed(CLI, call(words)),
  async error(words) {
    const { stdout, stderr } = await node(CLI, call(words));
    return stdout + stderr;
  },
});
