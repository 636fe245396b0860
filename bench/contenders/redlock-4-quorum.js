/** redlock 4 on the three servers of a quorum. */
export { contender } from './redlock-4.js';
