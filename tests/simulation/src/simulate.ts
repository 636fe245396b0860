/** The command: many runs, a table, and for every violation the seed that shows it again. */
import { parseArgs } from 'node:util';
import { systemClock } from './library.js';
import type { Profile } from './profile.js';
import { PROFILES } from './profiles.js';
import { Sum, tableOf } from './report.js';
import { runSimulation } from './run.js';

/** Some 400,000 grants. */
const SEEDS = 20;

const HELP = `Runs the real engine in simulated time, over a simulated store and network, with faults.

  --seeds N      runs per profile (default ${SEEDS})
  --seed S       the first seed (default 1); without --seeds, the only one
  --profile P    only this profile: ${PROFILES.map(({ name }) => name).join(', ')}
  --first        stop at the first violation
  --digest       print a digest of every simulation's history
  --history T    print every line of the history that contains this text
`;

export interface Output {
  write(text: string): void;
}

interface Choice {
  readonly profiles: readonly Profile[];
  readonly firstSeed: number;
  readonly seeds: number;
  readonly first: boolean;
  readonly digest: boolean;
  readonly history: string | undefined;
}

/** Resolves to the exit code: 0 without violations, 1 with, 2 when the arguments are wrong. */
export async function simulate(args: readonly string[], output: Output): Promise<number> {
  const choice = choiceOf(args);
  if (typeof choice === 'string') {
    output.write(choice);
    return choice === HELP ? 0 : 2;
  }
  const sums: Sum[] = [];
  const broken: string[] = [];
  for (const profile of choice.profiles) {
    if (choice.first && broken.length > 0) break;
    const sum = new Sum(profile.name);
    sums.push(sum);
    output.write(`${profile.name}: ${profile.about} `);
    await visit(profile, choice, sum, broken, output);
    output.write('\n');
  }
  output.write(`\n${tableOf(sums)}`);
  for (const complaint of broken) output.write(`\n${complaint}`);
  return broken.length > 0 ? 1 : 0;
}

async function visit(
  profile: Profile,
  choice: Choice,
  sum: Sum,
  broken: string[],
  output: Output,
): Promise<void> {
  const { firstSeed, seeds, first } = choice;
  for (let seed = firstSeed; seed < firstSeed + seeds && !(first && broken.length > 0); seed++) {
    const { digest, complaint } = await runOne(profile, seed, sum, noteOf(choice, output));
    output.write(complaint === null ? '.' : '!');
    if (choice.digest) output.write(digest);
    if (complaint !== null) broken.push(complaint);
  }
}

type OnNote = ((line: string) => void) | undefined;

function noteOf({ history }: Choice, output: Output): OnNote {
  if (history === undefined) return undefined;
  return (line) => {
    if (line.includes(history)) output.write(`${line}\n`);
  };
}

interface Ran {
  readonly digest: string;
  /** The violations, and the command that repeats the run. */
  readonly complaint: string | null;
}

async function runOne(profile: Profile, seed: number, sum: Sum, onNote: OnNote): Promise<Ran> {
  const startMs = systemClock.monotonicMs();
  const result = await runSimulation({ profile, seed, ...(onNote ? { onNote } : {}) });
  sum.add(result, (systemClock.monotonicMs() - startMs) / 1_000);
  const { digest, violations } = result;
  if (violations.length === 0) return { digest, complaint: null };
  const lines = violations.map(({ kind, atMs, text }) => `  ${kind} at ${atMs.toFixed(1)} ms: ${text}`);
  const again = `npm run simulate -- --profile ${profile.name} --seed ${seed}`;
  return { digest, complaint: `${profile.name}, seed ${seed}:\n${lines.join('\n')}\n  again: ${again}\n` };
}

function choiceOf(args: readonly string[]): Choice | string {
  try {
    return chosen(args);
  } catch (error) {
    if (error instanceof TypeError) return `${error.message}\n`;
    throw error;
  }
}

function chosen(args: readonly string[]): Choice | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      profile: { type: 'string' },
      first: { type: 'boolean', default: false },
      digest: { type: 'boolean', default: false },
      history: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return HELP;
  const firstSeed = Number(values.seed ?? 1);
  const seeds = Number(values.seeds ?? (values.seed === undefined ? SEEDS : 1));
  if (!Number.isSafeInteger(firstSeed) || !Number.isSafeInteger(seeds) || seeds < 1) {
    return '--seed and --seeds have to be whole numbers.\n';
  }
  const profiles = PROFILES.filter(({ name }) => values.profile === undefined || name === values.profile);
  if (profiles.length === 0) return `There is no profile "${values.profile}". See --help.\n`;
  const { first, digest, history } = values;
  return { profiles, firstSeed, seeds, first, digest, history };
}
