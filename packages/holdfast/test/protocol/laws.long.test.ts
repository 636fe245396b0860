/** The same on more scripts. */
import './laws.test.js';
