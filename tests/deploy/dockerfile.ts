/** `deploy/Dockerfile`, parsed, and its steps run in a folder instead of a container. */
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { DockerfileParser, Env, From, type Instruction, ModifiableInstruction } from 'dockerfile-ast';
import { run } from '../repository/shell.js';
import { files, read, root } from '../repository/tree.js';

export const text = read('deploy/Dockerfile');
const instructions: readonly Instruction[] = DockerfileParser.parse(text).getInstructions();

/** Of the last instruction with this keyword. */
export function argumentsOf(keyword: string): string {
  const content = instructions.findLast((each) => each.getKeyword() === keyword)?.getArgumentsContent();
  if (!content) throw new Error(`The Dockerfile has no ${keyword}.`);
  return content;
}

/** Of an instruction in the form of a JSON list. */
export const wordsOf = (keyword: string): readonly string[] => {
  const [list = '[]'] = /\[.*\]$/s.exec(argumentsOf(keyword)) ?? [];
  return JSON.parse(list) as string[];
};

export const variables: Readonly<Record<string, string>> = Object.fromEntries(
  instructions
    .filter((each) => each instanceof Env)
    .flatMap((each) => each.getProperties())
    .map((property) => [property.getName(), property.getValue() ?? '']),
);

/** What `COPY . .` sees: a clone, without what the ignore file names. */
const ignored = read('deploy/Dockerfile.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((pattern) => {
    const source = pattern
      .replaceAll('.', '\\.')
      .replaceAll('**/', '\0')
      .replaceAll('*', '[^/]*')
      .replaceAll('\0', '(?:.*/)?');
    return new RegExp(`^${source}(?:/|$)`);
  });
export const isIgnored = (file: string): boolean => ignored.some((pattern) => pattern.test(file));

const STEP_MS_MAX = 600_000;
/** Paths inside the image: at the beginning of a word, or of a value. */
const ABSOLUTE = /(?<=^|[\s="':])\/(?=\w)/g;

/** Runs the stages in folders of their own, and finds the paths of the last one. */
export class Image {
  readonly #folder: string;
  /** Where a path of the image is outside. Mounts hide what a stage has itself. */
  #mounted: Readonly<Record<string, string>> = {};
  #stage = '';
  #workdir = '/';

  constructor(folder: string) {
    this.#folder = folder;
    // Others than root may enter, as in an image.
    chmodSync(folder, 0o755);
  }

  /** The text with paths of the image as paths of this machine. */
  outside(content: string): string {
    const mounts = Object.entries(this.#mounted).reduce(
      (before, [target, source]) =>
        before.replaceAll(new RegExp(`(?<=^|\\s)${target}(?=/|\\s|$)`, 'g'), `\0${source}`),
      content,
    );
    return mounts.replace(ABSOLUTE, `${join(this.#folder, this.#stage)}/`).replaceAll('\0', '');
  }

  /** Steps that need no container: where nothing is built there is nothing to do. */
  async build(): Promise<void> {
    for (const step of instructions) {
      if (step instanceof From) this.#begin(step);
      else await this.#take(step);
    }
  }

  #begin(from: From): void {
    this.#stage = from.getBuildStage() ?? 'last';
    this.#workdir = '/';
    mkdirSync(join(this.#folder, this.#stage));
  }

  async #take(step: Instruction): Promise<void> {
    const content = step.getArgumentsContent() ?? '';
    switch (step.getKeyword()) {
      case 'WORKDIR':
        this.#workdir = content;
        return void mkdirSync(this.outside(content), { recursive: true });
      case 'COPY':
        if (content !== '. .') throw new Error(`COPY ${content} is not known here.`);
        return this.#copy(this.outside(this.#workdir));
      case 'RUN':
        return await this.#run(step, content);
      case 'USER':
      case 'VOLUME':
      case 'ENV':
      case 'EXPOSE':
      case 'HEALTHCHECK':
      case 'ENTRYPOINT':
      case 'CMD':
        return;
      default:
        throw new Error(`${step.getKeyword()} is not known here.`);
    }
  }

  #copy(into: string): void {
    for (const file of files.filter((each) => !isIgnored(each))) cpSync(join(root, file), join(into, file));
  }

  async #run(step: Instruction, content: string): Promise<void> {
    const flags = step instanceof ModifiableInstruction ? step.getFlags() : [];
    const mounts = flags.map((flag) => new URLSearchParams((flag.getValue() ?? '').replaceAll(',', '&')));
    const own = await run('npm', ['config', 'get', 'cache'], { cwd: this.#folder });
    this.#mounted = Object.fromEntries(
      mounts.map((mount) => [
        mount.get('target'),
        mount.get('type') === 'cache'
          ? own.trim()
          : join(this.#folder, mount.get('from') ?? '', mount.get('source') ?? ''),
      ]),
    );
    await run('sh', ['-ec', this.outside(content)], {
      cwd: this.outside(this.#workdir),
      env: { PATH: this.#path(), npm_config_prefer_offline: 'true' },
      timeoutMs: STEP_MS_MAX,
    });
    this.#mounted = {};
  }

  /** Only root can give files away. */
  #path(): string {
    const path = [dirname(process.execPath), process.env.PATH];
    if (process.getuid?.() === 0) return path.join(delimiter);
    const bin = join(this.#folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'chown'), '#!/bin/sh\n', { mode: 0o755 });
    return [bin, ...path].join(delimiter);
  }
}
