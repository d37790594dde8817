import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';

/** One instruction of a Dockerfile: `COPY`, and what stands behind it on its (joined) line. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The instructions of a Dockerfile, comments dropped and continued lines joined. */
export function parseDockerfile(text: string): Instruction[] {
  return text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^\s*(\w+)\s+(.*)$/.exec(line) ?? [];
      return { name: name.toUpperCase(), text: rest.trim() };
    });
}

/** The image that a Dockerfile's last stage makes, in a directory instead of a container. */
export interface BuiltImage {
  /** Stands for `/` of the image. */
  readonly root: string;
  /** Working directory inside it. */
  readonly workdir: string;
  readonly env: Record<string, string>;
  readonly user: string | undefined;
  readonly entrypoint: string[];
  readonly command: string[];
  readonly healthcheck: string[];
  readonly labels: string;
  readonly from: string[];
}

interface Stage {
  root: string;
  workdir: string;
  env: Record<string, string>;
}

const words = (text: string) => text.split(/\s+/).filter((word) => word !== '');

/**
 * Carries a Dockerfile out without Docker: each stage is a directory under `scratch`, `COPY` copies into it, `RUN` runs
 * there on this machine's node. The base images are taken to hold a node and nothing else that is needed.
 * @throws Error for an instruction that it does not know, a source that is missing or left out of the build context.
 */
export async function buildImage(dockerfile: string, context: string, scratch: string): Promise<BuiltImage> {
  const stages = new Map<string, Stage>();
  const from: string[] = [];
  const image = {
    user: undefined as string | undefined,
    entrypoint: [] as string[],
    command: [] as string[],
    healthcheck: [] as string[],
    labels: '',
  };
  let stage: Stage | undefined;
  const current = () => {
    if (!stage) throw new Error('an instruction before FROM');
    return stage;
  };
  const steps: Record<string, (text: string) => void | Promise<void>> = {
    FROM(text) {
      const [base = '', , name = `stage ${stages.size}`] = words(text);
      from.push(base);
      stage = { root: join(scratch, name), workdir: '/', env: {} };
      mkdirSync(stage.root, { recursive: true });
      stages.set(name, stage);
    },
    WORKDIR(text) {
      current().workdir = posix.resolve(current().workdir, text);
      mkdirSync(join(current().root, current().workdir), { recursive: true });
    },
    COPY(text) {
      const [, name] = /^--from=(\S+)/.exec(text) ?? [];
      const paths = words(text.replace(/^--from=\S+/, ''));
      const target = join(current().root, posix.resolve(current().workdir, paths.at(-1) ?? '.'));
      for (const path of paths.slice(0, -1)) {
        const source = name ? join(stages.get(name)?.root ?? '', path) : fromContext(context, path);
        if (!existsSync(source)) throw new Error(`COPY of ${path}, which is not there`);
        const into = paths.at(-1)?.endsWith('/') || (existsSync(target) && statSync(target).isDirectory());
        // A directory's contents are copied, a file goes under its own name.
        const place = into && statSync(source).isFile() ? join(target, basename(path)) : target;
        mkdirSync(dirname(place), { recursive: true });
        cpSync(source, place, { recursive: true, verbatimSymlinks: true });
      }
    },
    async RUN(text) {
      const { root, workdir, env } = current();
      await promisify(execFile)('/bin/sh', ['-c', text], {
        cwd: join(root, workdir),
        env: { ...process.env, npm_config_prefer_offline: 'true', ...env },
        maxBuffer: 16 * 1024 * 1024,
      });
    },
    ENV(text) {
      const [name = '', ...value] = text.split('=');
      current().env[name] = value.join('=');
    },
    USER(text) {
      image.user = text;
    },
    LABEL(text) {
      image.labels += `${text} `;
    },
    EXPOSE: () => {},
    ENTRYPOINT(text) {
      image.entrypoint = JSON.parse(text);
    },
    CMD(text) {
      image.command = JSON.parse(text);
    },
    HEALTHCHECK(text) {
      image.healthcheck = JSON.parse(text.slice(text.indexOf('[')));
    },
  };
  for (const { name, text } of parseDockerfile(readFileSync(dockerfile, 'utf8'))) {
    const step = steps[name];
    if (!step) throw new Error(`${name} is not known here`);
    await step(text);
  }
  const { root, workdir, env } = current();
  return { ...image, root, workdir, env, from };
}

/** A path of the build context, unless `.dockerignore` (here: a list of exceptions from `*`) leaves it out. */
function fromContext(context: string, path: string): string {
  const kept = readFileSync(join(context, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  if (!kept.includes(path)) throw new Error(`.dockerignore leaves ${path} out`);
  return join(context, path);
}
