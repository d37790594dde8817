// The gateway itself, built, told which era is behind it, as the others that translate are told.

import { route, startGateway } from '../bench/gateway.mjs';

const ERAS = { L: 'legacy', M: 'modern' };

/**
 * Where no server of the client's era closes the stream of a call for the client to come back, the gateway does so: after
 * most of the time that the fixture of the suite takes, and before twice that, since the suite comes back once.
 */
export const LM_ROUTE = { timeouts: { stream: '2s' } };

export const eragate = {
  name: 'Eragate',
  cells: ['LL', 'LM', 'ML', 'MM'],
  prepare: () => undefined,
  start({ backend, cell }) {
    const more = { questions: { roots: 'ask' }, ...(cell === 'LM' && LM_ROUTE) };
    return startGateway(backend, { routes: [route('/mcp', `${backend}/mcp`, ERAS[cell[1]], more)] });
  },
};
