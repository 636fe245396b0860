/** The same with more sequences. */
import './store-usual.test.js';
