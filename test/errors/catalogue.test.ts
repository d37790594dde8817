import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DeclaredError } from '../../src/exchange/declare-errors.js';
import { CELLS, startCell } from '../support/cells.js';
import { detailOf } from '../support/error-detail.js';

const ROOT = join(import.meta.dirname, '../..');

/** The modules of `src` that declare errors. */
const MODULES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter(
  (file) =>
    file.endsWith('.ts') && readFileSync(join(ROOT, 'src', file), 'utf8').includes('= declareErrors({'),
);

/** Every error that is declared somewhere in `src`. */
async function catalogue(): Promise<DeclaredError[]> {
  const declared: DeclaredError[] = [];
  for (const file of MODULES) {
    const exported = (await import(join(ROOT, 'src', file))) as Record<string, unknown>;
    for (const table of Object.values(exported)) {
      if (typeof table !== 'object' || table === null) continue;
      declared.push(...Object.values(table).filter((row) => row instanceof DeclaredError));
    }
  }
  return declared;
}

describe('the catalogue of errors', () => {
  test('has each name once', async () => {
    const names = (await catalogue()).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(40);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^ERAGATE_[A-Z_]+$/);
  });

  test('is in the troubleshooting page, with what to do', async () => {
    const page = readFileSync(join(ROOT, 'config/TROUBLESHOOTING.md'), 'utf8');
    const errors = await catalogue();
    for (const { name, hint } of errors) {
      expect(page).toContain(`| \`${name}\` |`);
      expect(page).toContain(hint.replaceAll('|', '\\|'));
    }
    const known = new Set<string>(errors.map(({ name }) => name));
    for (const [name] of page.matchAll(/ERAGATE_[A-Z_]+/g)) expect(known).toContain(name);
  });
});

/** Text of a page of the backend, which no client may see. */
const CANARY = 'canary-7f3a';

const PAGES: Record<string, [status: number, headers: Record<string, string>, error: string]> = {
  'an error page': [500, {}, 'ERAGATE_BACKEND_HTTP_ERROR'],
  'a page for a result': [200, { 'content-type': 'text/html' }, 'ERAGATE_NO_RESPONSE'],
  'a page of a proxy': [502, {}, 'ERAGATE_BACKEND_HTTP_ERROR'],
  'a busy page': [503, { 'retry-after': '7' }, 'ERAGATE_BACKEND_UNAVAILABLE'],
  'a page about credentials': [401, { 'www-authenticate': 'Bearer realm="x"' }, 'ERAGATE_UNAUTHORIZED'],
  'a page about rights': [403, {}, 'ERAGATE_FORBIDDEN'],
  'a page about the rate': [429, {}, 'ERAGATE_RATE_LIMITED'],
  'a page about the Host': [421, {}, 'ERAGATE_HOST_REFUSED'],
  'a redirect': [307, { location: `http://${CANARY}.example/` }, 'ERAGATE_RESPONSE_UNUSABLE'],
};

describe.each(CELLS)('%s: no client sees where the backend is, nor', (cell) => {
  test.each(Object.keys(PAGES))('%s', async (name) => {
    const [status, headers, error] = PAGES[name] as (typeof PAGES)[string];
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', ({ sendText }) => void sendText(`<p>${CANARY}</p>`, status, headers) as undefined);
      const refused = await rig.call('tools/call', { name: 'echo' }, { id: 9 });
      expect(refused.json).toMatchObject({ id: 9, error: { data: { eragate: error } } });
      const seen = `${refused.answer} ${JSON.stringify(refused.headers)}`;
      expect(seen).not.toContain(CANARY);
      expect(seen).not.toContain(new URL(rig.backend.url).host);
      expect(detailOf(rig.gateway, refused)).toContain(new URL(rig.backend.url).host);
      const line = rig.gateway.logs.find(({ error: named }) => named === error);
      expect(line).toMatchObject({ level: 40, requestId: refused.headers['x-request-id'] });
    } finally {
      await rig.close();
    }
  });

  test('an address that nobody listens at', async () => {
    const rig = await startCell(cell);
    try {
      await rig.call('tools/call', { name: 'echo' });
      const { host, port } = new URL(rig.backend.url);
      await rig.backend.stop();
      const refused = await rig.call('tools/call', { name: 'echo' }, { id: 9 });
      expect(refused.json.error.data).toEqual({ eragate: 'ERAGATE_BACKEND_UNREACHABLE' });
      const seen = `${refused.answer} ${JSON.stringify(refused.headers)}`;
      for (const secret of [host, port, 'ECONNREFUSED']) expect(seen).not.toContain(secret);
      expect(detailOf(rig.gateway, refused)).toContain(host);
    } finally {
      await rig.close();
    }
  });
});
