import type { Exchange } from './exchange.js';

/** Takes one line per exchange. Arguments, content and credentials are never part of it. */
export interface ExchangeLog {
  exchange(exchange: Exchange, route: string, httpStatus: number, outcome: string): void;
}
