/** The model of the suite, with all its sequences. */
import './conformance.test.js';
