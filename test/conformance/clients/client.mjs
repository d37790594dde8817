// node client.mjs legacy|modern direct|gateway [KEY=VALUE…] URL: what the suite runs as a client of its server at URL. With
// `gateway`, one is started in front of that server, in this process, and the client calls it; the keys are of its backend.

import { Login } from './login.mjs';
import { ASKED, scenarioCalled } from './scenarios.mjs';

const MAX_LOGINS = 3;

const [era, way, ...rest] = process.argv.slice(2);
const server = new URL(rest.pop());
const settings = Object.fromEntries(rest.map((setting) => setting.split('=')));
const line = await import(`./${era}.mjs`);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const login = scenario.startsWith('auth/') ? new Login(context) : undefined;
const { capabilities = {}, fill } = ASKED[scenario] ?? {};

async function startGateway() {
  const { parseConfig } = await import('../../../dist/config/index.js');
  const { createGateway } = await import('../../../dist/gateway.js');
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    log: { level: 'warn' },
    routes: [{ path: server.pathname, backend: { url: server.href, ...settings } }],
  };
  const gateway = createGateway(parseConfig(JSON.stringify(config), 'gateway.yaml'));
  return { origin: await gateway.listen(), close: () => gateway.close() };
}

const gateway = way === 'gateway' ? await startGateway() : undefined;
const url = gateway ? new URL(server.pathname, gateway.origin) : server;
let connection;

async function connect() {
  const transport = line.newTransport(url, login);
  const client = line.newClient({ name: 'conformance-client', version: '1.0.0' }, capabilities, fill);
  connection = { client, transport, ready: false };
  await client.connect(transport);
  connection.ready = true;
}

/** Runs one step on a connection; where that ends at a login, once more after it. */
async function call(step) {
  for (let logins = 0; ; logins += 1) {
    try {
      if (!connection?.ready) await connect();
      return await step(connection.client);
    } catch (error) {
      const answer = logins < MAX_LOGINS ? await login?.answer() : undefined;
      if (!answer) throw error;
      await line.finishLogin(connection.transport, answer);
    }
  }
}

let code = 0;
try {
  await scenarioCalled(scenario)(call, context);
  await connection.client.close();
} catch (error) {
  console.error(error);
  code = 1;
}
await gateway?.close();
process.exit(code);
