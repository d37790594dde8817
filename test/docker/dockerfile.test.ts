import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/index.js';
import { freePort, type Loose, until } from '../support/net.js';
import { type BuiltImage, buildImage } from './image.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DOCKERFILE = join(ROOT, 'docker/Dockerfile');

/** The user that the container runs as: some user without rights where these tests run as root. */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

describe('the image of docker/Dockerfile', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'eragate-image-'));
  // The user of the image may not be allowed into the folder of this Node.
  const node = join(scratch, 'node');
  let image: BuiltImage;
  let gateway: ChildProcess | undefined;

  beforeAll(async () => {
    copyFileSync(process.execPath, node);
    chmodSync(scratch, 0o755);
    image = await buildImage(DOCKERFILE, ROOT, scratch);
  }, 300_000);
  afterAll(() => {
    gateway?.kill('SIGKILL');
    rmSync(scratch, { recursive: true, force: true });
  });

  const command = ([program = '', ...args]: string[]): [string, string[]] => [
    program === 'node' ? node : program,
    args,
  ];

  test('has the gateway, its schema and its libraries, and nothing that only development needs', () => {
    const files = (path: string) => existsSync(join(image.root, image.workdir, path));
    const wanted = ['dist/main.js', 'config/eragate.schema.json', 'node_modules/fastify', 'LICENSE'];
    expect(wanted.filter((path) => !files(path))).toEqual([]);
    const unwanted = ['src', 'test', 'node_modules/vitest', 'node_modules/typescript', 'package-lock.json'];
    expect(unwanted.filter(files)).toEqual([]);
  });

  test('is made for a user without rights, node as PID 1, and a health check without curl', () => {
    expect(image.from.every((base) => base === 'node:24-slim')).toBe(true);
    expect(image.user).toMatch(/^[1-9]\d*$/);
    expect(image.entrypoint[0]).toBe('node');
    expect(image.healthcheck[0]).toBe('node');
    expect(image.labels).toMatch(/org\.opencontainers\.image\.(title|licenses)=/);
  });

  test('serves, is healthy, and ends on SIGTERM with 0 well within 10 s', async () => {
    const port = await freePort();
    const config = join(scratch, 'gateway.yaml');
    const routes = [{ path: '/mcp', backend: { url: 'http://127.0.0.1:9/mcp' } }];
    writeFileSync(config, JSON.stringify({ listen: { port }, routes }));
    const options = {
      cwd: join(image.root, image.workdir),
      env: { PATH: '/usr/bin:/bin', ...image.env, ERAGATE_HEALTH_URL: `http://127.0.0.1:${port}/healthz` },
      ...USER,
    };
    expect(image.command).toEqual(['serve', '--config', '/etc/eragate/eragate.yaml']);
    const [program, args] = command(image.entrypoint);
    const child = spawn(program, [...args, 'serve', '--config', config], { ...options, stdio: 'pipe' });
    gateway = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }

    const health = () => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    const response = await until(() => {
      if (child.exitCode !== null) throw new Error(`the gateway ended: ${output}`);
      return health();
    }, 'the gateway to listen');
    expect(response.status).toBe(200);
    const check = () => promisify(execFile)(...command(image.healthcheck), options);
    await expect(check()).resolves.toBeDefined();

    const asked = Date.now();
    child.kill('SIGTERM');
    const [code] = await once(child, 'exit');
    expect(code, output).toBe(0);
    expect(Date.now() - asked).toBeLessThan(10_000);
    await expect(check()).rejects.toMatchObject({ code: 1 });
  });
});

describe('docker/compose.yaml', () => {
  const compose: Loose = parse(readFileSync(join(ROOT, 'docker/compose.yaml'), 'utf8'));
  const { gateway } = compose.services;

  test('builds the image and mounts a configuration that is valid', () => {
    expect(join(ROOT, 'docker', gateway.build.context, gateway.build.dockerfile)).toBe(DOCKERFILE);
    const [source, target] = gateway.volumes[0].split(':');
    expect(target).toBe('/etc/eragate/eragate.yaml');
    const file = join(ROOT, 'docker', source);
    const config = parseConfig(readFileSync(file, 'utf8'), file, {});
    expect(config.listen.port).toBe(Number(gateway.ports[0].split(':').at(-1)));
    const backend = new URL(config.routes[0]?.backend.url ?? '');
    expect(compose.services[backend.hostname].environment.PORT).toBe(backend.port);
  });

  test('lets the gateway write nothing and gain nothing', () => {
    expect(gateway).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(gateway.security_opt).toContain('no-new-privileges:true');
  });
});
