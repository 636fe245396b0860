/** The same with 20,000 locks. */
import './watching.test.js';
