/** Bugs planted in the consensus of the quorum store. */
import type { PlantedBug } from './planted-bugs.ts';

const QUORUM = 'stores/quorum/quorum.js';
const QUORUM_TIME = 'stores/quorum/quorum-time.js';
const QUORUM_REGISTER = 'stores/quorum/register.js';

/** Two processes decide on the same record of a quorum, or on one that is over. */
const BROKEN_REGISTER = [
  'not chosen',
  'chosen all the same',
  'ended by another',
  'expiry moved back',
  'decision order',
  'token order',
  'token twice',
  'unknown token',
  'overlap',
  'permits',
  'outlived',
  'orphan',
  'released while held',
];

export const PLANTED_QUORUM_BUGS: readonly PlantedBug[] = [
  {
    name: 'a minority of the quorum is enough',
    profile: 'quorum',
    seeds: 6,
    edits: [
      { file: QUORUM, find: 'Math.floor(members.length / 2) + 1', put: 'Math.floor(members.length / 2)' },
    ],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'of two values of a quorum, the lower ballot counts',
    profile: 'quorum',
    seeds: 6,
    edits: [
      {
        file: QUORUM_REGISTER,
        find: 'compareBallots(one.accepted, best.accepted) > 0',
        put: "best.accepted === '' || (one.accepted !== '' && compareBallots(one.accepted, best.accepted) < 0)",
      },
    ],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'a value that one member of the quorum accepted counts as refused',
    profile: 'quorum',
    seeds: 6,
    edits: [
      { file: QUORUM_REGISTER, find: "isCertain && isUntouched ? 'refused' : 'unsure'", put: "'refused'" },
    ],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'a ballot is used for two values',
    profile: 'quorum',
    seeds: 6,
    edits: [{ file: QUORUM_REGISTER, find: 'if (!ready || ready.isUsed ||', put: 'if (!ready ||' }],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'a value that only some members of the quorum have accepted is returned as it is',
    profile: 'quorum',
    seeds: 6,
    edits: [{ file: QUORUM_REGISTER, find: 'count >= majority &&', put: '' }],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'the clock of one member of the quorum decides',
    profile: 'quorum',
    seeds: 6,
    edits: [
      {
        file: QUORUM_TIME,
        find: 'sort((a, b) => a - b)[this.#majority - 1]',
        put: 'sort((a, b) => a - b)[0]',
      },
      {
        file: QUORUM_TIME,
        find: 'sort((a, b) => b - a)[this.#majority - 1]',
        put: 'sort((a, b) => b - a)[0]',
      },
    ],
    shows: BROKEN_REGISTER,
  },
  {
    name: 'a process with three of five servers counts a majority of three',
    profile: 'quorum-of-five',
    seeds: 6,
    edits: [
      { file: QUORUM, find: 'if (size !== given)', put: 'if (false)' },
      { file: QUORUM, find: 'size: given', put: 'size' },
    ],
    shows: BROKEN_REGISTER,
  },
];
