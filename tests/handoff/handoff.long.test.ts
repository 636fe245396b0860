/** The same on the other stores. */
import './handoff.test.js';
