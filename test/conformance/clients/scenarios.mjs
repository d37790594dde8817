// What a client does in each scenario of the suite: with `call(run)`, which logs in where that is asked for.

const listAndCall = (name, args) => async (call) => {
  await call((client) => client.listTools());
  await call((client) => client.callTool({ name, arguments: args }));
};

async function callEach(call, calls) {
  for (const { name, arguments: args } of calls) {
    await call((client) => client.callTool({ name, arguments: args }));
  }
}

const SCENARIOS = {
  initialize: (call) => call((client) => client.listTools()),
  'request-metadata': (call) => call(() => {}),
  'json-schema-ref-no-deref': (call) => call((client) => client.listTools()),
  tools_call: listAndCall('add_numbers', { a: 5, b: 3 }),
  'sse-retry': listAndCall('test_reconnection', {}),
  'elicitation-sep1034-client-defaults': listAndCall('test_client_elicitation_defaults', {}),
  async 'http-standard-headers'(call) {
    const { tools } = await call((client) => client.listTools());
    await callEach(call, [{ name: tools[0].name, arguments: {} }]);
    const { resources } = await call((client) => client.listResources());
    await call((client) => client.readResource({ uri: resources[0].uri }));
    const { prompts } = await call((client) => client.listPrompts());
    await call((client) => client.getPrompt({ name: prompts[0].name, arguments: {} }));
  },
  async 'http-custom-headers'(call, { toolCalls }) {
    await call((client) => client.listTools());
    await callEach(call, toolCalls);
  },
  async 'http-invalid-tool-headers'(call) {
    const { tools } = await call((client) => client.listTools());
    await callEach(
      call,
      tools.map(({ name }) => ({ name, arguments: { region: 'us-west1' } })),
    );
  },
  async 'sep-2322-client-request-state'(call) {
    const calls = ['echo_state', 'no_state', 'unrelated', 'no_result_type'].map((name) => ({
      name: `test_mrtr_${name}`,
      arguments: {},
    }));
    await call((client) => client.listTools());
    await callEach(call, calls.slice(0, -1));
    // A client may refuse a result without a type. What counts is that it takes it for no question.
    await callEach(call, calls.slice(-1)).catch(() => {});
  },
  async 'json-schema-2020-12-preservation'(call) {
    const { tools } = await call((client) => client.listTools());
    const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await callEach(call, [{ name: 'json_schema_echo', arguments: { schema: inputSchema } }]);
  },
};

/** @throws Error for a scenario that is not known */
export function scenarioCalled(name) {
  if (name.startsWith('auth/')) return listAndCall('test-tool', {});
  const scenario = SCENARIOS[name];
  if (!scenario) throw new Error(`Nothing is known of the scenario ${name}`);
  return scenario;
}

const FULL = { roots: { listChanged: true }, sampling: {}, elicitation: { form: { applyDefaults: true } } };

/** What the client declares, and fills into forms, in scenarios in which it can be asked. */
export const ASKED = {
  'request-metadata': { capabilities: FULL, fill: {} },
  'sep-2322-client-request-state': { capabilities: FULL, fill: { confirmed: true } },
  'elicitation-sep1034-client-defaults': { capabilities: FULL, fill: {} },
};
