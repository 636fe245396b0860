/** The same on more scripts. */
import './line-laws.test.js';
