"""The four objectives of ADBench (https://github.com/microsoft/ADBench) in NumPy, differentiated by pullback.

    python -m benchmarks.adbench

The mathematics is that of Srajer, Kukelova, Fitzgibbon: A benchmark of selected algorithmic differentiation tools on
some problems in computer vision and machine learning, Optimization Methods and Software 33(4-6), 2018. ADBench's data
are not part of this repository.
"""
