/** Holdfast in rows of the table `distributed_locks`, which other software has. */
import { distributedLocks } from 'holdfast/postgres/layouts';
import { holdfastOn } from '../postgres-contenders.js';

export const contender = holdfastOn({ layout: distributedLocks });
