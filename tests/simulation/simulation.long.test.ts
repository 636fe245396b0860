/** The same with other seeds. */
import './simulation.test.js';
