/** The same on the other stores. */
import './servers.test.js';
