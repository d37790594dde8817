// Servers that people use, as their users start them: over stdio. `words` are those of each server; those that need to
// know where they run are functions.
import { FASTMCP_4 } from './environments.mjs';
import { npm, own, pip } from './install.mjs';

const node = (script, ...args) => ({ command: process.execPath, args: [script, ...args] });
const reference = (name, version) => ({
  name: `@modelcontextprotocol/server-${name}`,
  version,
  speaks: 'legacy; TypeScript SDK v1',
  install: npm('reference', {
    '@modelcontextprotocol/server-filesystem': '2026.8.31',
    '@modelcontextprotocol/server-memory': '2026.8.31',
    '@modelcontextprotocol/server-sequential-thinking': '2026.8.31',
  }),
  stdio: ({ folder, here }) =>
    node(
      `${folder}/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`,
      ...(name === 'filesystem' ? [`${here}/files`] : []),
    ),
  core: ['stdio'],
});
const pypi = (name, version, args = []) => ({
  name,
  version,
  speaks: 'both; Python SDK 2.3.0',
  install: pip('reference', {
    'mcp-server-fetch': '2026.10.24',
    'mcp-server-time': '2026.10.19',
    'mcp-server-git': '2026.10.19',
    mcp: '2.3.0',
  }),
  stdio: ({ folder }) => ({ command: `${folder}/bin/${name}`, args }),
  core: ['stdio'],
});

const everything = ({ folder }, transport, env) => ({
  ...node(`${folder}/node_modules/@modelcontextprotocol/server-everything/dist/index.js`, transport),
  env,
});

export const REFERENCES = [
  {
    ...reference('filesystem', '2026.8.31'),
    words: ({ here }) => ({
      list: { tools: ['read_text_file', 'list_directory'] },
      call: { tool: 'read_text_file', args: { path: `${here}/files/note.txt` }, text: 'Kept for servers' },
      error: { tool: 'read_text_file', args: { path: '/etc/hostname' }, text: 'outside allowed directories' },
    }),
  },
  {
    ...reference('memory', '2026.8.31'),
    words() {
      // It keeps what it is told beside its package, for the next run too.
      const name = `Ada ${Date.now()}`;
      return {
        list: { tools: ['create_entities', 'read_graph'] },
        call: {
          tool: 'create_entities',
          args: { entities: [{ name, entityType: 'person', observations: ['wrote notes'] }] },
          text: name,
        },
        error: {
          tool: 'add_observations',
          args: { observations: [{ entityName: 'Nobody', contents: ['is not there'] }] },
          text: 'Nobody not found',
        },
      };
    },
  },
  {
    ...reference('sequential-thinking', '2026.8.31'),
    words: {
      list: { tools: ['sequentialthinking'] },
      call: {
        tool: 'sequentialthinking',
        args: { thought: 'First', thoughtNumber: 1, totalThoughts: 2, nextThoughtNeeded: true },
        text: '"thoughtNumber": 1',
      },
      error: { tool: 'sequentialthinking', args: { thought: 'First' }, text: 'nvalid' },
    },
  },
  {
    name: '@modelcontextprotocol/server-everything',
    version: '2026.8.31',
    speaks: 'legacy; TypeScript SDK v1',
    install: own,
    packages: ['@modelcontextprotocol/server-everything'],
    http: (place) => everything(place, 'streamableHttp', { PORT: String(place.port) }),
    sse: (place) => everything(place, 'sse', { PORT: String(place.port) }),
    stdio: (place) => everything(place, 'stdio'),
    words: {
      list: { tools: ['get-sum', 'echo'] },
      call: { tool: 'get-sum', args: { a: 3, b: 4 }, text: 'The sum of 3 and 4 is 7.' },
      error: { tool: 'get-sum', args: { a: 'three', b: 4 }, text: 'Invalid arguments' },
      read: { uri: 'demo://resource/static/document/architecture.md', text: 'Architecture' },
      progress: {
        tool: 'trigger-long-running-operation',
        args: { duration: 1, steps: 3 },
        count: 3,
        text: 'completed',
      },
      question: { tool: 'trigger-elicitation-request', args: {}, text: 'Ada' },
    },
    lacks: { change: 'its updates come by a clock of its own' },
    core: ['stdio'],
  },
  {
    ...pypi('mcp-server-fetch', '2026.10.24', ['--ignore-robots-txt', '--allow-private-ips']),
    words: ({ gateway }) => ({
      list: { tools: ['fetch'] },
      call: { tool: 'fetch', args: { url: `${gateway}/healthz`, raw: true }, text: 'ok' },
      error: { tool: 'fetch', args: { url: 'http://127.0.0.1:9/' }, text: 'Failed to fetch' },
    }),
  },
  {
    ...pypi('mcp-server-time', '2026.10.19'),
    words: {
      list: { tools: ['get_current_time', 'convert_time'] },
      call: {
        tool: 'convert_time',
        args: { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' },
        text: 'T21:00',
      },
      error: { tool: 'get_current_time', args: { timezone: 'Nowhere/None' }, text: 'Nowhere/None' },
    },
  },
  {
    ...pypi('mcp-server-git', '2026.10.19'),
    words: ({ root }) => ({
      list: { tools: ['git_status', 'git_log'] },
      call: { tool: 'git_status', args: { repo_path: root }, text: 'Repository status' },
      error: { tool: 'git_status', args: { repo_path: '/nowhere' }, text: '/nowhere' },
    }),
  },
  {
    name: '@eslint/mcp',
    version: '0.3.13',
    speaks: 'legacy; TypeScript SDK v1',
    install: npm('eslint-mcp', { '@eslint/mcp': '0.3.13' }),
    stdio: ({ folder, here }) => ({
      ...node(`${folder}/node_modules/@eslint/mcp/src/mcp-cli.js`),
      cwd: `${here}/files`,
    }),
    words: ({ here }) => ({
      list: { tools: ['lint-files'] },
      call: { tool: 'lint-files', args: { filePaths: [`${here}/files/loud.js`] }, text: 'no-console' },
      error: { tool: 'lint-files', args: { filePaths: [] }, text: 'nvalid' },
    }),
    core: ['stdio'],
  },
  {
    name: 'kubernetes-mcp-server',
    version: '0.0.67',
    speaks: 'both; Go SDK',
    install: npm('kubernetes', { 'kubernetes-mcp-server': '0.0.67' }),
    stdio: ({ folder, here }) =>
      node(
        `${folder}/node_modules/kubernetes-mcp-server/bin/index.js`,
        '--kubeconfig',
        `${here}/files/kubeconfig.yaml`,
      ),
    words: {
      list: { tools: ['configuration_view', 'pods_list'] },
      call: { tool: 'configuration_view', args: {}, text: 'https://127.0.0.1:6443' },
      error: { tool: 'namespaces_list', args: {}, text: 'refused' },
    },
    core: ['stdio'],
  },
  {
    name: 'mcp-server-motherduck',
    version: '1.1.0',
    speaks: 'both; Python FastMCP 4.2.3',
    install: FASTMCP_4,
    stdio: ({ folder }) => ({
      command: `${folder}/bin/mcp-server-motherduck`,
      args: ['--db-path', ':memory:', '--read-write'],
    }),
    words: {
      list: { tools: ['execute_query'] },
      call: { tool: 'execute_query', args: { sql: 'SELECT 3 + 4 AS sum' }, text: '7' },
      error: { tool: 'execute_query', args: { sql: 'SELECT nothing' }, text: 'nothing' },
    },
    core: ['stdio'],
  },
];
