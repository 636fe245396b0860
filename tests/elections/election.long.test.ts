/** The same for a minute. */
import './election.test.js';
