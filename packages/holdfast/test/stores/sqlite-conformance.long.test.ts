/** The model of the suite, with all its sequences. */
import './sqlite-conformance.test.js';
