/** redlock 5 on the three servers of a quorum. */
export { contender } from './redlock-5.js';
