import { type Logger, pino } from 'pino';

/** Of a line: its members as JSON text, without the braces around them. */
interface Rendered {
  readonly members: string;
}

/** What pino lets those replace who have lines to write faster than it can (its `symbols`). */
interface Insides {
  readonly [pino.symbols.lsCacheSym]: Readonly<Record<number, string>>;
  readonly [pino.symbols.chindingsSym]: string;
  readonly [pino.symbols.endSym]: string;
  [pino.symbols.asJsonSym]: (line: Rendered, message: undefined, level: number, time: string) => string;
  readonly [pino.symbols.writeSym]: (line: Rendered, message: undefined, level: number) => void;
}

/**
 * Writes lines of level `info` whose members are JSON text already, to where a logger writes its own and in the same
 * form. pino takes the members of each line one by one, whatever they are; where all lines have the same ones, that
 * costs more than all else that is done about a line.
 */
export function renderedLines(log: Logger): (members: string) => void {
  const lines = log.child({}) as unknown as Insides;
  const head = lines[pino.symbols.lsCacheSym];
  const bindings = lines[pino.symbols.chindingsSym];
  const end = lines[pino.symbols.endSym];
  lines[pino.symbols.asJsonSym] = ({ members }, _message, level, time) =>
    `${head[level]}${time}${bindings},${members}${end}`;
  const level = pino.levels.values['info'] as number;
  return (members) => lines[pino.symbols.writeSym]({ members }, undefined, level);
}
