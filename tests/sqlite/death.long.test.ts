/** The same, more often. */
import './death.test.js';
