// The gateway itself, built, told which era is behind it, as the others that translate are told.

import { route, startGateway } from '../bench/gateway.mjs';

const ERAS = { L: 'legacy', M: 'modern' };

export const eragate = {
  name: 'Eragate',
  cells: ['LL', 'LM', 'ML', 'MM'],
  prepare: () => undefined,
  start({ backend, cell }) {
    const more = { questions: { roots: 'ask' } };
    return startGateway(backend, { routes: [route('/mcp', `${backend}/mcp`, ERAS[cell[1]], more)] });
  },
};
