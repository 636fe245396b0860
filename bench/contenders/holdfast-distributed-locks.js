/** Holdfast in rows of the table `distributed_locks`, which other software has. */
import { holdfastOn } from '../postgres-contenders.js';

export const contender = holdfastOn({ layout: 'distributed-locks' });
